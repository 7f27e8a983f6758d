"""What one does with scores: validate, calibrate, regrade, and the log of attempts."""
