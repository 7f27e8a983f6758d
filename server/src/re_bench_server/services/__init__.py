"""Services beside a session's sandbox, reached through a socket that only this sandbox shows."""
