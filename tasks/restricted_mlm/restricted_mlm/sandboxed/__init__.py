"""Functions that run in sandboxes. A submission can read every file of this package."""
