"""Offer sessions of an Open Reward Standard server to agents that speak the Model Context Protocol (MCP)."""
