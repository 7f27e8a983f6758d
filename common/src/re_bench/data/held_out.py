"""Where held-out text comes from; a module of its own, since every scorer needs that and none of what makes text."""

HELD_OUT_FROM = frozenset({"datasets", "transformers"})
"""The packages whose modules may be held out: those that neither torch nor a task's own tools bring along.

A submission can read what is installed beside it, so that other packages hold nothing that is unseen. Where these two
are installed, sandboxes do not show them.
"""
