"""The command ``mlab-agent``."""

from __future__ import annotations

import sys

from mlab_agent.api_key import restart_without_keys


def start() -> None:
    """Run the command, with the keys removed from its environment."""
    restart_without_keys("mlab_agent", sys.argv[1:])
    from mlab_agent.cli import main  # noqa: PLC0415 - not needed before the restart

    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    start()
