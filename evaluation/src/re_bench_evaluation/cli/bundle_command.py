"""The command ``bundle``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.errors import UsageError
from re_bench.options import Count, Flag, Json, Positive, SandboxName, print_json

if TYPE_CHECKING:
    from re_bench_evaluation.pack import PackedBundle
    from re_bench_evaluation.verify import Verification

_SAMPLE = 5
Optional = Literal["agent", "operator-logs", "workspaces"]


@app.command(group=EVALUATORS)
def bundle(
    path: Annotated[Path, Parameter(name="EVALUATION", help="An evaluation's directory; with --verify a bundle.")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="The file to write (default: NAME.bundle.tar.gz).")] = None,
    include: Annotated[
        tuple[Optional, ...],
        Parameter(
            negative=(),
            help="Also pack all files of the agents, logs of scorers (which may quote held-out data), or workspaces.",
        ),
    ] = (),
    max_mib: Annotated[Positive | None, Parameter(help="The most that all files may be together, in MiB.")] = None,
    max_files: Annotated[Positive | None, Parameter(help="With --verify: the most files (default: 200000).")] = None,
    verify: Annotated[Flag, Parameter(help="Check a bundle: checksums, records, and scores of a sample.")] = False,
    sample: Annotated[
        Count | None, Parameter(help=f"With --verify: how many submissions are scored again (default: {_SAMPLE}).")
    ] = None,
    seed: Annotated[Count, Parameter(help="With --verify: of the choice among them.")] = 0,
    sandbox: SandboxName = None,
    json: Json = False,
) -> int:
    """Pack an evaluation's results into one file that others can check; or check such a file."""
    wrong = {"--out": out, "--include": include} if verify else {
        "--sample": sample, "--max-files": max_files, "--sandbox": sandbox,
    }  # fmt: skip
    for name, value in wrong.items():
        if value not in (None, ()):
            raise UsageError(f"{name} is for {'packing' if verify else 'bundle --verify'} alone")
    if not verify:
        return _pack(path, out, include, max_mib, json=json)
    from re_bench_evaluation.verify import verify as verify_bundle

    limits = {name: value for name, value in (("max_mib", max_mib), ("max_files", max_files)) if value is not None}
    sample = _SAMPLE if sample is None else sample
    return _show_verified(verify_bundle(path, sample=sample, seed=seed, sandbox=sandbox, **limits), json=json)


def _pack(path: Path, out: Path | None, include: tuple[Optional, ...], max_mib: int | None, *, json: bool) -> int:
    from re_bench_evaluation.pack import pack

    out = out or Path(f"{path.resolve().name}.bundle.tar.gz")
    limit = {} if max_mib is None else {"max_mib": max_mib}
    bundle = pack(path, out, optional=include, **limit)
    if json:
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


def _show_verified(result: Verification, *, json: bool) -> int:
    from re_bench.tables import number, printable, table

    if json:
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
