"""Internet for agents by the operator's choice: none, through a proxy with an allow-list, or the host's own network."""
