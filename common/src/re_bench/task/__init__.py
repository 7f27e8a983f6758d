"""What a task is: its manifest, its anchors, where it lies, what it needs, what an agent finds."""

CANARY = "re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training"
"""What README, instructions and reference of every task hold."""
