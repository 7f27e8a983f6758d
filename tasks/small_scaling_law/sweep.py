"""The runs behind the truth of a profile: ``python sweep.py --profile cpu [--workers N]``; resumable.

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
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bytes_text import open_bytes
from prepare import COPIED, HERE, lay_out, prepare
from scales import SCALES, Scale

from re_bench.calibrate import hardware, versions
from re_bench.programs import ending_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SWEEPS", "Job", "Sweep", "jobs", "runs_file"]


@dataclass(frozen=True)
class Sweep:
    """Which runs the truth of a profile is fitted to."""

    shares: tuple[float, ...]
    """Of the target's FLOPs."""
    widths: tuple[int, ...]
    seeds: tuple[int, ...] = (1, 2)


SWEEPS = {
    "cpu": Sweep((0.5, 1.0), (24, 32, 40, 48, 56, 64, 80, 96, 128)),
    "gpu": Sweep((0.5, 1.0), (192, 256, 320, 384, 448, 512, 640)),
}
"""By profile; not run yet, so that ranges may have to be moved until ``fit.py`` finds the optimum inside."""


@dataclass(frozen=True)
class Job:
    """One run."""

    n_embd: int
    max_iters: int
    seed: int
    share: float


def jobs(scale: Scale, sweep: Sweep) -> list[Job]:
    """Return all runs, the longest first so that the workers end together; seeds come last, to have a table early."""
    found = [
        Job(width, scale.steps(width, share * scale.target_flops), seed, share)
        for seed in sweep.seeds
        for share in sorted(sweep.shares, reverse=True)
        for width in sweep.widths
    ]
    return sorted(found, key=lambda job: (sweep.seeds.index(job.seed), -job.max_iters))


def runs_file(profile: str) -> Path:
    """Return where the lines of a sweep lie."""
    return Path(HERE) / "truth" / f"{profile}-runs.jsonl"


def made_with(profile: str) -> dict[str, Any]:
    """Return what a run depends on beside its job: the code's checksum, and the text's."""
    experiments = SCALES[profile].experiments
    assert experiments is not None
    sources = [*(Path(path) for path in COPIED if Path(path).name != "scales.py"), HERE / "starter" / "experiment.py"]
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    manifest = json.loads((open_bytes(experiments.text) / "manifest.json").read_text(encoding="utf-8"))
    scale = {key: value for key, value in asdict(SCALES[profile]).items() if key != "default"}
    return {"profile": profile, "scale": json.loads(json.dumps(scale)), "code": code, "text": manifest["files"]}


def finished(path: Path, made: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of runs made in the same way; half a line, of a sweep that was killed, is taken away."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        path.write_bytes(whole)
    lines = [json.loads(line) for line in whole.splitlines()]
    return [line for line in lines if {key: line.get(key) for key in made} == made]


def sweep(profile: str, wanted: Sequence[Job], path: Path, workers: int) -> Iterator[dict[str, Any]]:
    """Make the runs that are not in ``path`` yet, add a line for each, and yield it."""
    made = made_with(profile)
    there = {(line["n_embd"], line["max_iters"], line["seed"]) for line in finished(path, made)}
    left = [job for job in wanted if (job.n_embd, job.max_iters, job.seed) not in there]
    with tempfile.TemporaryDirectory(prefix="re-bench-sweep-") as place:
        workspace = Path(place) / "workspace"
        shutil.copytree(HERE / "starter", workspace, ignore=shutil.ignore_patterns("__pycache__"))
        lay_out(profile, workspace)
        context = multiprocessing.get_context("spawn")
        numbers = context.Queue()
        for number in range(workers):
            numbers.put(number)
        with (
            ProcessPoolExecutor(workers, context, _enter, (str(workspace), numbers)) as pool,
            path.open("a", encoding="utf-8") as file,
        ):
            for future in as_completed([pool.submit(_run, job, SCALES[profile]) for job in left]):
                line = {**future.result(), **made}
                file.write(json.dumps(line) + "\n")
                file.flush()
                yield line


def _enter(workspace: str, numbers: Any) -> None:
    """Become a worker: one thread, the modules of the workspace, and a GPU of one's own where there are some."""
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, workspace)
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        torch.cuda.set_device(numbers.get() % torch.cuda.device_count())


def _run(job: Job, scale: Scale) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    started = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    outcome = importlib.import_module("experiment").run(job.n_embd, job.max_iters, job.seed, scale)
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else hardware()
    circumstances = {"started": started, "hardware": where, "versions": versions()}
    return {**asdict(job), "flops": scale.flops(job.n_embd, job.max_iters), **asdict(outcome), **circumstances}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and sweep."""
    parser = argparse.ArgumentParser(description="Make the runs that the truth of a profile is fitted to.")
    parser.add_argument("--profile", choices=list(SWEEPS), required=True)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: one a core)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where the lines go, if not into the task")
    options = parser.parse_args(arguments)
    with ending_as("sweep.py"):
        prepare(options.profile, lambda line: print(line, file=sys.stderr, flush=True))
        path = options.out or runs_file(options.profile)
        wanted = jobs(SCALES[options.profile], SWEEPS[options.profile])
        for line in sweep(options.profile, wanted, path, options.workers):
            print(f"n_embd {line['n_embd']}, {line['max_iters']} steps, seed {line['seed']}: loss {line['loss']}, "
                  f"{line['seconds']:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
