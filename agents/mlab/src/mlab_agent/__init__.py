"""The MLAgentBench research agent."""
