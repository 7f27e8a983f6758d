"""Keep attempts: their log, copies of submissions, and scorers' records."""
