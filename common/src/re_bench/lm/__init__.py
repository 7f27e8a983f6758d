"""Language models and their training, for three tasks; the modules need torch, and the paths of their files do not."""

from pathlib import Path

GPT_FILE = Path(__file__).with_name("gpt.py")
"""The file of :mod:`re_bench.lm.gpt`, for those who copy it."""
TRAINING_FILE = Path(__file__).with_name("training.py")
"""The file of :mod:`re_bench.lm.training`, for those who copy it."""
