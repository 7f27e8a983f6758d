"""The package of the ``fix_embedding`` task."""
