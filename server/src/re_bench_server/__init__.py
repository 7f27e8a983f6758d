"""The ORS environment of re-bench: serves the tasks to agents over the Open Reward Standard."""
