"""Store attempts: the attempt log, copies of submissions, and scorers' records."""
