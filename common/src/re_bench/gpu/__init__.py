"""The GPU that is timed: its state, its lock, and times of programs that take turns on it."""
