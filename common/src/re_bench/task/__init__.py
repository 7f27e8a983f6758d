"""Tasks: discovery, manifest, checks, preparation and workspaces."""

CANARY = "re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training"
"""A line in the README, instructions and reference of every task."""
