"""What runs in the sandboxes: the exporter beside the submission, and the runner without it."""
