"""Write ``docs/commands.md`` from the commands of ``re-bench``: ``python docs/site/commands.py``."""

from __future__ import annotations

from pathlib import Path

from re_bench.cli.main import app, load_commands

PAGE = Path(__file__).parents[1] / "commands.md"
_HEAD = """# Commands

Every command and its options, as `--help` shows them; written by `python docs/site/commands.py`, and a test compares.
The exit status is 0 for success, 1 for an internal error or a failed validation, 2 for a usage error or something that
this machine lacks, and 3 for an invalid submission.

"""


def page() -> str:
    """Return the whole page."""
    load_commands()
    text = app.generate_docs(output_format="markdown", recursive=True, heading_level=2)
    return f"{_HEAD}{text.partition(chr(10))[2].strip()}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
