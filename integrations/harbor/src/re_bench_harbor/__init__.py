"""Export tasks to Harbor, and score them in its containers."""
