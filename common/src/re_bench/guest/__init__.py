"""Code that runs inside sandboxes, which contain no other part of re-bench; standard library only."""
