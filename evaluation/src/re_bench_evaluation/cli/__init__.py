"""Commands for evaluators, added to ``re-bench`` through entry points."""
