"""A person as the agent: work at a task against the clock, with the log and the limits of a server's session."""
