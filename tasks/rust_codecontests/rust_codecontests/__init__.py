"""The package of the ``rust_codecontests`` task."""
