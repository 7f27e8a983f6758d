"""A session's shell, seen from the server: the sandbox, the protocol of its supervisor, and its limits."""
