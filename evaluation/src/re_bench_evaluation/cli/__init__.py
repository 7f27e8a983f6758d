"""The commands of evaluators, which entry points add to ``re-bench``."""
