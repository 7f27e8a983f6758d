"""Makes the truth of a profile anew: ``python rebuild.py --profile cpu`` is ``sweep.py`` and then ``fit.py``.

``re-bench calibrate`` runs it first. Runs that are in ``truth/PROFILE-runs.jsonl`` already, made in the same way, are
not made again; without that file all are.
"""

from __future__ import annotations

import argparse

import fit
import sweep


def main() -> None:
    """Read the command line, sweep, fit."""
    parser = argparse.ArgumentParser(description="Make the truth of a profile anew.")
    parser.add_argument("--profile", required=True)
    options = parser.parse_args()
    if options.profile in sweep.SWEEPS:  # the truth of the others is published
        sweep.main(["--profile", options.profile])
        fit.main(["--profile", options.profile])


if __name__ == "__main__":
    main()
