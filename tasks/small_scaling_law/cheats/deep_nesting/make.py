"""Hands in arrays within arrays, on which parsers overflow their stack.

Stopped by: the size of the file, and Python's own limit, which is caught.
"""

from pathlib import Path

Path("answer.json").write_text("[" * 4000)
