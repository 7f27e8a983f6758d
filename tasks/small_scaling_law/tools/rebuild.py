"""Make the truth of a profile anew: ``python tools/rebuild.py --profile cpu`` is ``sweep.py`` and then ``fit.py``.

``re-bench calibrate`` runs it first. Runs that are in ``truth/PROFILE-runs.jsonl`` already, made in the same way, are
not made again; without that file all are.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from re_bench.processes import cli_entry_point, run_program
from small_scaling_law.profiles import SCALES

TOOLS = Path(__file__).parent


def main() -> None:
    """Read the command line, sweep, fit."""
    parser = argparse.ArgumentParser(description="Make the truth of a profile anew.")
    parser.add_argument("--profile", choices=list(SCALES), required=True)
    options = parser.parse_args()
    if SCALES[options.profile].experiments is None:  # its truth is published
        return
    with cli_entry_point("rebuild.py"):
        for tool in ("sweep.py", "fit.py"):
            status, _stdout = run_program([str(TOOLS / tool), "--profile", options.profile], capture=False)
            if status != 0:
                sys.exit(status)


if __name__ == "__main__":
    main()
