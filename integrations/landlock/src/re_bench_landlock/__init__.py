"""Two sandboxes for machines that allow no namespaces: ``landlock`` and ``user``."""
