"""Run ``re-bench`` as ``python -m re_bench.cli``."""

import sys

from re_bench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
