"""The command ``re-bench``."""
