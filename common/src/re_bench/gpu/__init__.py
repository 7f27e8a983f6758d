"""GPUs: which one to use, its state, its lock, and interleaved timings."""
