"""Write ``docs/commands.md`` from the commands of ``re-bench``: ``python docs/site/commands.py``."""

from __future__ import annotations

from pathlib import Path

from re_bench.cli.main import app, load_commands

PAGE = Path(__file__).parents[1] / "commands.md"
_HEAD = """# Commands

All commands and their options, as `--help` shows them. `python docs/site/commands.py` generates this page, and a test
checks that it is current. Commands exit with 0 on success, 1 for an internal error or a failed validation, 2 for a
usage error or something that this machine does not support, and 3 for an invalid submission.

"""


def page() -> str:
    """Return the text of the page."""
    load_commands()
    text = app.generate_docs(output_format="markdown", recursive=True, heading_level=2)
    return f"{_HEAD}{text.partition(chr(10))[2].strip()}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
