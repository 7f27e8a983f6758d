"""Code that runs in sandboxes; it uses only the standard library, because sandboxes contain little else of re-bench."""
