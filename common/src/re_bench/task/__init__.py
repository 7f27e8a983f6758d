"""What a task is: its manifest, its anchors, where it lies, what it needs, what an agent finds."""
