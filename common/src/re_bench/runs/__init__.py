"""Validate, calibrate and regrade tasks, on this machine or on a cluster."""
