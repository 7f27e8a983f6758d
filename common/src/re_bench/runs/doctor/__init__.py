"""What this machine lacks for the tasks: each check is a function that returns findings, and all run at once."""
