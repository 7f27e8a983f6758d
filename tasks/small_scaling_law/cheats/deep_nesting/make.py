"""Submit deeply nested arrays, hoping that the parser's stack overflows.

Stopped because the size of the file is limited, and the depth is checked before the file is parsed.
"""

from pathlib import Path

Path("answer.json").write_text("[" * 4000)
