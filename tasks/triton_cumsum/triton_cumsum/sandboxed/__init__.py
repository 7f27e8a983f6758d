"""Exactly what runs inside a sandbox: two runners, which call the submission, and the meter, which never sees it."""
