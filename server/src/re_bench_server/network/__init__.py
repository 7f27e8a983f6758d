"""The agents' network access, as chosen by the operator: none, an allow-list proxy, or the host's network."""
