"""Where the agent's files are: in a directory on this machine (``local``), or in an ORS server's session (``ors``)."""
