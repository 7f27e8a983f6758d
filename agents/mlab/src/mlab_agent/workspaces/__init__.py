"""Workspaces, which contain the agent's files: local directories (``local``) and sessions of ORS servers (``ors``)."""
