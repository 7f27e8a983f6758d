"""Internet for agents by the operator's choice: none, through an allow-list relay, or the host's own network."""
