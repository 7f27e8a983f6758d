"""Everything of ours that runs inside a sandbox. Standard library only: sandboxes are shown these files alone."""
