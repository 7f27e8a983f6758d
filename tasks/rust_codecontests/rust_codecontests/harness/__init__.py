"""What runs in the sandbox of a submission."""
