"""The text of the language tasks: made from pinned wheels, the same everywhere, checked whenever it is opened.

:func:`open_text` gives the tokens, :class:`RandomWindows` and :func:`consecutive_windows` draw batches from them.
``python -m re_bench.text prepare NAME`` makes a text, and :mod:`re_bench.text.prepare` says how.
"""

from re_bench.data.cache import cache_directory
from re_bench.text.batches import RandomWindows, State, consecutive_windows
from re_bench.text.prepare import open_text
from re_bench.text.prepared import PreparedText

__all__ = ["PreparedText", "RandomWindows", "State", "cache_directory", "consecutive_windows", "open_text"]
