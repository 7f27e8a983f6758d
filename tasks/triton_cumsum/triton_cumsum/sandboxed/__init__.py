"""Code that runs in sandboxes: two runners, which call the submission, and the meter, which never loads it."""
