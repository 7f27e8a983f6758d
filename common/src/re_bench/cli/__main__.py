"""``python -m re_bench.cli``: the command where no script of it is installed."""

import sys

from re_bench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
