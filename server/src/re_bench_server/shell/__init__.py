"""The server's side of a session's shell: the sandbox, the supervisor's protocol, and the limits."""
