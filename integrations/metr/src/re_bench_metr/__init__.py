"""Tasks as families of METR's Task Standard."""

SANDBOXES = ("bubblewrap", "user")
"""Backends for a family. The others need an engine, or would run submissions as root beside the truth."""
