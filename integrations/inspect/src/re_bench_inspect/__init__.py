"""Provide the tasks of re-bench, their sandbox and the MLAgentBench agent to Inspect."""
