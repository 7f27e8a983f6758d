"""Report the results of runs as tables, JSON and web pages."""
