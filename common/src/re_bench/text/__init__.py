"""Texts for the language tasks: made from pinned sources, identical on all machines, and verified when opened.

:func:`open_text` returns the tokens; :class:`RandomWindows` and :func:`consecutive_windows` make batches of tokens.
``python -m re_bench.text prepare NAME`` prepares a text; see :mod:`re_bench.text.prepare`.
"""

from re_bench.text.batches import RandomWindows, State, consecutive_windows
from re_bench.text.prepare import open_text
from re_bench.text.prepared import PreparedText

__all__ = ["PreparedText", "RandomWindows", "State", "consecutive_windows", "open_text"]
