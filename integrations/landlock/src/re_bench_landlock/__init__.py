"""Provide the sandboxes ``landlock`` and ``user`` for machines without namespaces."""
