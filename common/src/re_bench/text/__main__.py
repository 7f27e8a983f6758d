"""``python -m re_bench.text``: prepare texts, and pin their checksums."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.text.prepared import FILES, pinned_checksums
from re_bench.text.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from re_bench.text.prepare import Preparation


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 done, 1 a failure, 2 a wrong request."""
    options = _parser().parse_args(arguments)
    action: Callable[[argparse.Namespace], int] = options.action
    try:
        return action(options)
    except ReBenchError as error:
        _say(str(error))
        return error.exit_status
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m re_bench.text", description="The text of the language tasks.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, action, text in (
        ("prepare", _prepare, "make texts in $RE_BENCH_CACHE, unless they are there"),
        ("pin", _pin, "make texts anew and write their checksums into the repository, for changed wheels or rules"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.set_defaults(action=action)
        command.add_argument(
            "names",
            metavar="NAME",
            nargs="*",
            help="as docstrings-2048; if none, all with checksums; openwebtext is the text of profile paper",
        )
        command.add_argument("--wheels", metavar="DIR", type=Path, help="look for the wheels here first")
        command.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _prepare(options: argparse.Namespace) -> int:
    from re_bench.text.prepare import prepare  # noqa: PLC0415 - tokenizers is wanted only here

    names = options.names or list(pinned_checksums())
    done = [prepare(name, folder=options.wheels, say=_say) for name in names]
    _report(done, json_wanted=options.json)
    return 0


def _pin(options: argparse.Namespace) -> int:
    from re_bench.text.prepare import prepare  # noqa: PLC0415 - as above

    names = options.names or list(pinned_checksums())
    for name in names:
        Recipe.named(name)  # refuses what is not made from wheels
    with tempfile.TemporaryDirectory() as cache:
        done = [prepare(name, folder=options.wheels, cache=Path(cache), pinned=False, say=_say) for name in names]
    manifests = [each.text.manifest for each in done]
    pins = pinned_checksums() | {
        each["name"]: {"key": each["key"]} | {file: each["files"][file] for file in FILES} for each in manifests
    }
    path = Path(__file__).with_name("checksums.json")
    path.write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")
    _report(done, json_wanted=options.json)
    return 0


def _report(done: Sequence[Preparation], *, json_wanted: bool) -> None:
    if json_wanted:
        texts = [
            {"directory": str(each.text.directory), "seconds": each.seconds, **each.text.manifest} for each in done
        ]
        print(json.dumps({"texts": texts}))
        return
    for each in done:
        tokens = each.text.manifest["figures"]["tokens"]
        how = f"made in {sum(each.seconds.values()):.0f} s" if each.seconds else "was there"
        sizes = f"{tokens['train']:,} tokens to train on, {tokens['heldout']:,} held out"
        print(f"{each.text.manifest['name']}: {sizes}; {how}; {each.text.directory}")


def _say(line: str) -> None:
    print(f"re_bench.text: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
