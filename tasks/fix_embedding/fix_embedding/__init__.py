"""The package of the task fix_embedding."""
