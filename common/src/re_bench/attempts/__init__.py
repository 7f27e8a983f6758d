"""What is kept of attempts: their log, copies of submissions, what scorers recorded."""
