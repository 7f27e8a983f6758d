"""The tasks of re-bench, their sandbox and the MLAgentBench agent in Inspect."""
