"""Services that run outside a session's sandbox and listen on sockets that are visible only in this sandbox."""
