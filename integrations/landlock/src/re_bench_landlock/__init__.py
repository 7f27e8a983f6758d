"""The sandbox backends ``landlock`` and ``user``, for machines without namespaces."""
