"""The command ``bundle``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_json, add_sandbox, positive, print_json
from re_bench.cli.parser import add_old_name

if TYPE_CHECKING:
    import argparse

    from re_bench_evaluation.bundle.pack import PackedBundle

_SAMPLE = 5


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="EVALUATION", type=Path, help="an evaluation's directory; with --verify a bundle"
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="the file to write (default: NAME.bundle.tar.gz)")
    include = parser.add_argument(
        "--include",
        dest="optional",
        action="append",
        default=[],
        choices=("agent", "operator-logs", "workspaces"),
        help="also pack all files of the agents, what scorers logged (which may quote held-out data), or workspaces",
    )
    add_old_name(parser, "--with", include)
    parser.add_argument("--max-mib", metavar="N", type=positive, help="the most that all files may be together, in MiB")
    parser.add_argument(
        "--max-files", metavar="N", type=positive, help="with --verify: the most files (default: 200000)"
    )
    parser.add_argument(
        "--verify", action="store_true", help="check a bundle: checksums, records, and scores of a sample"
    )
    parser.add_argument(
        "--sample", metavar="N", type=_count, help=f"how many submissions are scored again (default: {_SAMPLE})"
    )
    parser.add_argument("--seed", metavar="N", type=_count, default=0, help="of the choice among them (default: 0)")
    add_sandbox(parser)
    add_json(parser)


def _count(text: str) -> int:
    return 0 if text == "0" else positive(text)


def _run(options: argparse.Namespace) -> int:
    from re_bench.errors import UsageError

    wrong = {"--out": options.out, "--include": options.optional} if options.verify else {
        "--sample": options.sample, "--max-files": options.max_files, "--sandbox": options.sandbox,
    }  # fmt: skip
    for name, value in wrong.items():
        if value not in (None, []):
            raise UsageError(f"{name} is for {'packing' if options.verify else 'bundle --verify'} alone")
    return _verify(options) if options.verify else _pack(options)


def _pack(options: argparse.Namespace) -> int:
    from re_bench_evaluation.bundle.pack import pack

    out = options.out or Path(f"{options.path.resolve().name}.bundle.tar.gz")
    limit = {} if options.max_mib is None else {"max_mib": options.max_mib}
    bundle = pack(options.path, out, optional=options.optional, **limit)
    if options.json:
        about = {"path": str(out), "sha256": bundle.sha256, "bytes": out.stat().st_size, "unpacked_bytes": bundle.bytes}
        about |= {"unfinished": bundle.unfinished, "unknown_variables": bundle.unknown_variables}
        about |= bundle.manifest.model_dump(mode="json", include={"changed", "left_out"})
        print_json({**about, "files": len(bundle.manifest.files)})
    else:
        _print_packed(bundle)
    return 0


def _print_packed(bundle: PackedBundle) -> None:
    from re_bench.tables import printable

    mib, unpacked = bundle.path.stat().st_size / (1 << 20), bundle.bytes / (1 << 20)
    print(f"{bundle.path}: {len(bundle.manifest.files)} files, {unpacked:.1f} MiB, packed {mib:.1f} MiB")
    print(f"SHA-256 {bundle.sha256}")
    for name, change in bundle.manifest.changed.items():
        print(f"changed: {name}: {change}")
    for entry in bundle.manifest.left_out:
        print(f"left out: {entry.files} files, {entry.bytes / (1 << 20):.1f} MiB: {entry.reason}")
    for name in bundle.unfinished:
        print(f"not ended: the run {printable(name)}")
    for name in bundle.unknown_variables:
        print(f"not looked for: the value of {name}, which the plan names and which is not set here")


def _verify(options: argparse.Namespace) -> int:
    from re_bench.tables import number, printable, table
    from re_bench_evaluation.bundle.archive import ArchiveLimits
    from re_bench_evaluation.bundle.verify import verify

    default = ArchiveLimits()
    limits = ArchiveLimits(options.max_mib or default.mib, options.max_files or default.files)
    sample = _SAMPLE if options.sample is None else options.sample
    result = verify(options.path, sample=sample, seed=options.seed, sandbox=options.sandbox, limits=limits)
    if options.json:
        print_json(result.to_dict())
        return 0 if result.holds else 1
    if result.rescored:
        header = ("run", "attempt", "status", "reward", "now", "reward now", "outcome")
        rows = [
            (
                printable(entry.run), str(entry.attempt), entry.status, number(entry.reward), entry.status_now or "-",
                number(entry.reward_now), printable(f"{entry.outcome}: {entry.reason}"),
            )
            for entry in result.rescored
        ]  # fmt: skip
        print(table(header, rows))
    for note in result.notes:
        print(f"note: {printable(note)}")
    for problem in result.problems:
        print(f"PROBLEM: {printable(problem)}")
    verdict = "verified" if result.holds else "NOT verified"
    print(f"{verdict}: {result.files} files as the manifest says, {result.compared} scores compared")
    return 0 if result.holds else 1


COMMAND = Command(
    "bundle",
    "pack an evaluation's results into one file that anybody can check",
    _options,
    _run,
    examples=("re-bench bundle evaluation/", "re-bench bundle evaluation.bundle.tar.gz --verify"),
)
