"""The package of the task small_scaling_law."""
