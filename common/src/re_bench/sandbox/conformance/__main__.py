"""``python -m re_bench.sandbox.conformance [--sandbox NAME] [--json] [CHECK ...]``: the suite alone."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from re_bench.errors import ReBenchError
from re_bench.sandbox import open_backend
from re_bench.sandbox.conformance import CHECKS, outcomes
from re_bench.sandbox.spec import BACKENDS


def main() -> int:
    """Print what came of every check; return 0 if all hold, 1 if one does not, 2 if there is no such sandbox."""
    parser = argparse.ArgumentParser(prog="conformance", description="Try everything that a sandbox must hold.")
    parser.add_argument("--sandbox", choices=BACKENDS)
    parser.add_argument("checks", metavar="CHECK", nargs="*", help="the checks to make (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if unknown := set(options.checks) - set(CHECKS):
        parser.error(f"there is no check {', '.join(sorted(unknown))}")
    try:
        backend = open_backend(options.sandbox)
    except ReBenchError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    tried = []
    for outcome in outcomes(backend, options.checks or CHECKS):
        tried.append(outcome)
        if not options.json:
            print(f"{'held' if outcome.held else 'NOT HELD'}  {outcome.name}  {outcome.why}", flush=True)
    holds = all(outcome.held for outcome in tried)
    if options.json:
        print(json.dumps({"sandbox": backend.name, "holds": holds, "checks": [asdict(outcome) for outcome in tried]}))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
