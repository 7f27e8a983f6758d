"""GPUs: choosing, describing and locking them, and interleaved timings."""
