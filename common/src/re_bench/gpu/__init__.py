"""GPUs: choosing, describing and locking them."""
