"""Submit deeply nested arrays, hoping that the parser's stack overflows.

Stopped because the size of the file is limited, and the parser limits the depth.
"""

from pathlib import Path

Path("answer.json").write_text("[" * 4000)
