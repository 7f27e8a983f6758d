"""The command ``transcripts``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, print_json

if TYPE_CHECKING:
    import argparse


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        help="the directory of an evaluation, of one of its runs, of an mlab run, or a server's state directory",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("transcripts"),
        help="write into this directory (default: transcripts)",
    )
    add_json(parser)


def _run(options: argparse.Namespace) -> int:
    from re_bench.tables import printable, table
    from re_bench_evaluation.transcripts.write import write_trajectories

    written = write_trajectories(options.directory, options.out)
    if options.json:
        files = [{**vars(entry), "path": str(entry.path), "source": str(entry.source)} for entry in written]
        print_json({"trajectories": files})
    else:
        header = ("trajectory", "steps", "attempts", "torn lines")
        rows = [
            (printable(str(entry.path)), str(entry.steps), str(entry.attempts), str(entry.torn)) for entry in written
        ]
        print(table(header, rows))
    return 0


COMMAND = Command(
    "transcripts",
    "write what agents did as trajectories in ATIF, for Harbor's viewer and others",
    _options,
    _run,
    examples=("re-bench transcripts evaluation/ --out transcripts/",),
)
