"""Results that anybody can check: an evaluation packed into one file, and that file verified elsewhere."""
