"""Functions that run in sandboxes. Submissions can read all files of this package."""
