"""Run evaluations according to plans, and report their results."""
