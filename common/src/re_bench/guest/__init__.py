"""Code that runs in sandboxes, which contain few other parts of re-bench; it uses only the standard library."""
