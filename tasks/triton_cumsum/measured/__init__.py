"""Timing submissions on a GPU: the trusted side here, what runs beside a submission in ``player/``."""
