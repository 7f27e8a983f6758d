"""The task task_name: $title."""
