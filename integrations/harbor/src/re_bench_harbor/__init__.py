"""Tasks as directories of Harbor, and the two programs that score them there."""
