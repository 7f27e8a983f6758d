"""Where the agent's files are: a directory of this machine (``local``), or a session of an ORS server (``ors``)."""
