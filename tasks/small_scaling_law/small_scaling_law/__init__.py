"""The package of the ``small_scaling_law`` task."""
