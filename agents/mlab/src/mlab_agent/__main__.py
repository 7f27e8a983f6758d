"""The command ``mlab-agent``."""

from __future__ import annotations

import sys

from mlab_agent.keys import move_key

__all__ = ["start"]


def start() -> None:
    """Run the command, with the key of the model out of its environment."""
    move_key("mlab_agent", sys.argv[1:])
    from mlab_agent.cli import main  # noqa: PLC0415 - the rest is not needed before

    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    start()
