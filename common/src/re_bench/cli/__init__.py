"""The command-line program ``re-bench``."""
