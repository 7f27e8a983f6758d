"""GPUs: which GPU to use, its state, its lock, and interleaved timings."""
