"""The ORS environment of re-bench: agents reach the tasks over the Open Reward Standard."""
