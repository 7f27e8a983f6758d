"""Let a person work on a task like an agent: with a time limit, a limit on attempts, and the same logs."""
