"""Export tasks to Harbor, and score submissions in Harbor's containers."""
