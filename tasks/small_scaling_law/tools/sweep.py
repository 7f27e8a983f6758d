"""Make the runs behind the truth of a profile: ``python tools/sweep.py --profile cpu [--workers N]``; resumable.

Every run is one JSON line of ``truth/PROFILE-runs.jsonl`` with all that is needed to repeat it, written when it is
done. What is there already, made by the same code on the same text, is not made again. ``fit.py`` fits the truth.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import importlib
import json
import multiprocessing
import os
import runpy
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.data.provenance import hardware, versions
from re_bench.processes import cli_entry_point
from small_scaling_law.bytes_text import open_bytes
from small_scaling_law.grading import runs_file
from small_scaling_law.prepare import COPIED, lay_out, prepare
from small_scaling_law.profiles import SCALES, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOOLS = Path(__file__).parent
STARTER = TOOLS.parent / "starter"
REWORDED = {
    "6d33d7b2bfdfa1d66034e314afba5ed97e9319386494ad04aaf0c660b446463a": (
        "c3b3e11aea5d73519bf7ec54656e2ed216f2178352291d45887f1d1ff3cf7d35"
    ),
}
"""Checksums of code that runs were made with, and of today's where it makes the same runs, bit by bit, in other words.

Whoever changes this repeats some of the runs first. With every change of what a run computes, the entries go.
"""


@dataclass(frozen=True)
class Row:
    """The runs of one budget."""

    share: float
    """Of the target's FLOPs."""
    widths: tuple[int, ...]
    edges: tuple[int, ...] = ()
    """Widths far from the best, which get one seed only."""
    seeds: int = 2


SWEEPS = {
    "cpu": (
        Row(0.002, (8, 12, 16), (4, 20), seeds=3),
        Row(0.006, (8, 12, 16, 20), (4, 24, 28), seeds=3),
        Row(0.02, (12, 16, 20, 24, 32), (8, 44), seeds=3),
        Row(0.5, (40, 52, 64), (32, 80, 100)),
        Row(1.0, (40, 52, 64, 80), (32, 100, 128)),
    ),
    "gpu": (
        Row(0.002, (32, 48, 64), (24, 96)),
        Row(0.006, (48, 64, 96), (32, 128)),
        Row(0.02, (64, 96, 128), (192, 256)),
        # Near the target the curve is flat: neighbours a factor of 1.6 apart differ by more than seeds do.
        Row(0.5, (256, 400, 640), (160, 1024), seeds=3),
        Row(1.0, (256, 400, 640), (200, 1024), seeds=3),
    ),
}
"""By profile. The truth is fitted to the rows near the target; from the others, which are within what agents may spend,
one can see whether it can be extrapolated to."""


@dataclass(frozen=True)
class Job:
    """One run."""

    n_embd: int
    max_iters: int
    seed: int
    share: float


def jobs(scale: Scale, rows: Sequence[Row], first_seed: int = 1) -> list[Job]:
    """Return all runs, longest first so that the workers end together; more seeds come last, to have a table early."""
    unordered = [
        Job(width, scale.steps(width, row.share * scale.target_flops), first_seed + repeat, row.share)
        for row in rows
        for repeat in range(row.seeds)
        for width in (*row.widths, *(row.edges if repeat == 0 else ()))
    ]
    return sorted(unordered, key=lambda job: (job.seed, -job.max_iters))


def code_checksum() -> str:
    """Return the SHA-256 of the code that a run consists of."""
    sources = [*(Path(path) for name, path in COPIED.items() if name != "scales.py"), STARTER / "experiment.py"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def made_with(profile: str) -> dict[str, Any]:
    """Return what a run depends on beside its job: the code's checksum, the text's, and all that is fixed."""
    scale = SCALES[profile]
    assert scale.experiments is not None
    manifest = json.loads((open_bytes(scale.experiments.text) / "manifest.json").read_text(encoding="utf-8"))
    fixed = {key: value for key, value in asdict(scale).items() if key not in {"default", "experiments"}}
    fixed |= {key: value for key, value in asdict(scale.experiments).items() if not key.endswith("_flops")}
    return {"profile": profile, "fixed": fixed, "code": code_checksum(), "text": manifest["files"]}


def finished(path: Path, made: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of runs made in the same way; half a line, of a sweep that was killed, is taken away."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    return [line for line in lines if is_made_alike(line, made)]


def is_made_alike(line: dict[str, Any], made: dict[str, Any]) -> bool:
    """Tell whether a line's run was made as ``made`` says, or by the same code in other words."""
    code = line.get("code", "")
    alike = line | {"code": made["code"] if REWORDED.get(code) == made["code"] else code}
    return {key: alike.get(key) for key in made} == made


def sweep(profile: str, planned: Sequence[Job], path: Path, workers: int) -> Iterator[dict[str, Any]]:
    """Make the runs that are not in ``path`` yet, add a line for each, and yield it."""
    made = made_with(profile)
    done = {(line["n_embd"], line["max_iters"], line["seed"]) for line in finished(path, made)}
    missing = [job for job in planned if (job.n_embd, job.max_iters, job.seed) not in done]
    with tempfile.TemporaryDirectory(prefix="re-bench-sweep-") as directory:
        workspace = Path(directory) / "workspace"
        shutil.copytree(STARTER, workspace, ignore=shutil.ignore_patterns("__pycache__"))
        lay_out(profile, workspace)
        context = multiprocessing.get_context("spawn")
        numbers = context.Queue()
        for number in range(workers):
            numbers.put(number)
        with (
            ProcessPoolExecutor(workers, context, _enter, (str(workspace), numbers)) as pool,
            path.open("a", encoding="utf-8") as file,
        ):
            futures = [pool.submit(_run, job, SCALES[profile]) for job in missing]
            try:
                for future in as_completed(futures):
                    line = {**future.result(), **made}
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    yield line
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in multiprocessing.active_children():
                    worker.terminate()
                raise


def _enter(workspace: str, numbers: Any) -> None:
    """Become a worker: one thread, the modules of the workspace, and a GPU of one's own where there are some."""
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, workspace)
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        torch.cuda.set_device(numbers.get() % torch.cuda.device_count())
        runpy.run_path(str(TOOLS / "captured.py"))["install"]()


def _run(job: Job, scale: Scale) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    outcome = importlib.import_module("experiment").run(job.n_embd, job.max_iters, job.seed, scale)
    gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if gpu else hardware()
    circumstances = {"started": started, "hardware": device, "versions": versions(), "captured": gpu}
    return {**asdict(job), "flops": scale.flops(job.n_embd, job.max_iters), **asdict(outcome), **circumstances}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and sweep."""
    parser = argparse.ArgumentParser(description="Make the runs that the truth of a profile is fitted to.")
    parser.add_argument("--profile", choices=list(SWEEPS), required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one a core)")
    parser.add_argument("--first-seed", type=int, default=1, help="another one repeats the sweep with other seeds")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where the lines go, if not into the task")
    options = parser.parse_args(arguments)
    with cli_entry_point("sweep.py"):
        prepare(options.profile, lambda line: print(line, file=sys.stderr, flush=True))
        path = options.out or runs_file(options.profile)
        planned = jobs(SCALES[options.profile], SWEEPS[options.profile], options.first_seed)
        for line in sweep(options.profile, planned, path, options.workers):
            print(f"n_embd {line['n_embd']}, {line['max_iters']} steps, seed {line['seed']}: loss {line['loss']}, "
                  f"{line['seconds']:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
