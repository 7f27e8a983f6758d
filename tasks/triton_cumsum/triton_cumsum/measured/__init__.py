"""Check and time a submission on a GPU (profile ``gpu``), alternating with our baseline and reference."""
