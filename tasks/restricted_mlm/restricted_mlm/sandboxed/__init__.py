"""The functions that run in sandboxes, and nothing that a submission must not see."""
