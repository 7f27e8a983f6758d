"""The MLAgentBench research agent."""

__version__ = "0.1.0"
