"""The environment's server: ``python server/server.py OPTIONS`` is ``re-bench serve OPTIONS``."""

from __future__ import annotations

import sys

from re_bench.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
