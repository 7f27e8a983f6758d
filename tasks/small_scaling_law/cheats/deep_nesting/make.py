"""Hands in arrays within arrays, on which parsers overflow their stack.

Stopped by: the size of the file, and a bound on depth that is looked at before anything is parsed.
"""

from pathlib import Path

Path("answer.json").write_text("[" * 4000)
