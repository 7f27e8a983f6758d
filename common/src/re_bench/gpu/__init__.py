"""The GPU that is timed: which one, its state, its lock, and times of programs that take turns on it."""
