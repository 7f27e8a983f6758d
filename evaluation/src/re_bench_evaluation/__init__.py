"""Evaluations: plans of runs, and the directories of their results."""
