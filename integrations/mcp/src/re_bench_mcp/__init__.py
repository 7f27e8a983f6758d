"""Offer sessions of an Open Reward Standard server to agents that speak the Model Context Protocol (MCP)."""

PLACEHOLDERS = ("prompt", "prompt_file", "mcp_config", "mcp_command", "mcp_program", "mcp_arguments")
"""Placeholders that the agent's command line, given to ``re-bench connect``, may contain."""
