"""The command ``sandbox``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_sandbox, print_json

if TYPE_CHECKING:
    import argparse


def _sandbox_options(parser: argparse.ArgumentParser) -> None:
    add_sandbox(parser)
    add_json(parser)


def _sandbox(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from re_bench.sandbox import open_backend
    from re_bench.sandbox.attack import try_attacks
    from re_bench.sandbox.attacks import ATTACKS
    from re_bench.tables import table

    backend = open_backend(options.sandbox)
    outcomes = list(try_attacks(backend, ATTACKS))
    holds = all(outcome.held for outcome in outcomes)
    if options.json:
        print_json({"sandbox": backend.name, "holds": holds, "checks": [asdict(outcome) for outcome in outcomes]})
        return 0 if holds else 1
    rows = [
        [outcome.name, f"{outcome.seconds:.2f} s", "yes" if outcome.held else f"NO: {outcome.why}"]
        for outcome in outcomes
    ]
    print(table(("attack", "took", "held"), rows))
    print(f"{backend.name}: {sum(outcome.held for outcome in outcomes)} of {len(outcomes)} attacks were held")
    return 0 if holds else 1


COMMANDS = (
    Command(
        "sandbox",
        "attack the sandbox of this machine and report what holds",
        _sandbox_options,
        _sandbox,
        group="benchmark maintainers",
        examples=("re-bench sandbox --sandbox bubblewrap",),
    ),
)
