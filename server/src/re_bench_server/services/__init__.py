"""Services outside a session's sandbox, on sockets that only this sandbox shows."""
