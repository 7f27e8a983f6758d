"""Transcripts of runs in ATIF, the Agent Trajectory Interchange Format of Harbor (version 1.7)."""
