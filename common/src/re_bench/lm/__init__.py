"""Language models and training for three tasks. The modules need torch; importing this package does not."""

from pathlib import Path

GPT_FILE = Path(__file__).with_name("gpt.py")
"""The file of :mod:`re_bench.lm.gpt`, for copying into workspaces."""
TRAINING_FILE = Path(__file__).with_name("training.py")
"""The file of :mod:`re_bench.lm.training`, for copying into workspaces."""
