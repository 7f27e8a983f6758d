"""What reads a submission inside the sandbox."""
