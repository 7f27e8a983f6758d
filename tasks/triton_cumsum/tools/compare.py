"""Compare the modelled times of profile ``cpu`` with times measured on a GPU, on many correct solutions.

``compare.py model OUT.json`` models the time of each of :mod:`variants`; ``compare.py measure OUT.json`` times
them on a GPU, by CUDA events over calls that follow each other, and needs torch, Triton and NumPy only;
``compare.py show MODELLED.json MEASURED.json [--plot FILE.svg]`` prints a table. ``docs/tasks/triton_cumsum.md`` shows
the outcome; its data lie in ``docs/tasks/triton_cumsum/``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import fcntl
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))

import variants  # type: ignore[import-not-found] # beside this program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TASK = Path(__file__).parents[1]
ELEMENTS = 100_000_000
COMPILED = (70_016, 70_001)
"""Lengths of the first calls: Triton compiles for lengths that 16 divides, and for others."""
BATCH_MS = 20
TIMEOUT_S = 200
LENGTH = 10 * 65_536
"""Elements at which the model counts, as well as an eighth, twice and four times that; in a scoring it is random."""


def over_all(work: Callable[[Path], dict[str, Any]], names: Sequence[str], workers: int) -> dict[str, Any]:
    """Return what ``work`` gives for the folder of each variant, or of those in ``names``; a failure is a message."""
    with tempfile.TemporaryDirectory(prefix="re-bench-compare-") as directory:
        Path(directory).chmod(0o755)
        folders = {name: path for name, path in variants.write(Path(directory)).items() if not names or name in names}
        with ThreadPoolExecutor(workers) as pool:
            outcomes = dict(zip(folders, pool.map(work, folders.values()), strict=True))
    for name, outcome in outcomes.items():
        if "message" in outcome:
            print(f"{name}: {outcome['message']}", file=sys.stderr)
    return outcomes


def in_process(command: str, folder: Path) -> dict[str, Any]:
    """Return what this program prints for one solution, in a process of its own."""
    arguments = [sys.executable, __file__, command, str(folder)]
    try:
        run = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"message": f"took more than {TIMEOUT_S} s"}
    if run.returncode:
        return {"message": (run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1]}
    outcome: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return outcome


def model_one(folder: Path) -> dict[str, Any]:
    """Return the modelled milliseconds of a solution, by the counts that profile ``cpu`` takes, without its sandbox."""
    os.environ["TRITON_INTERPRET"] = "1"  # Triton reads this when it is imported
    sys.path[:0] = [str(TASK), str(TASK.parents[1] / "common" / "src")]
    names = ("modelled.cost", "grading", "harness.cpu_runner", "harness.meter")
    cost, grading, runner, meter = (importlib.import_module(f"triton_cumsum.{name}") for name in names)
    numpy = importlib.import_module("numpy")
    runner.load({"directory": str(folder)}, [], [])
    generator, runs = numpy.random.default_rng(0), []
    for length in (LENGTH // 8, LENGTH, 2 * LENGTH, 4 * LENGTH):
        x, other, y = grading.uniform(generator, length), grading.uniform(generator, length), numpy.empty(length, "i4")
        trace = runner.run({"length": length, "record": True}, [memoryview(x)], [memoryview(y).cast("B")])["trace"]
        reply = meter.replay({"trace": trace, "length": length}, [memoryview(other)], [memoryview(y).cast("B")])
        assert numpy.array_equal(y, grading.prefix_sum(other)), "wrong result"
        runs.append(cost.parse_steps(reply["steps"]))
    seconds = cost.extrapolate(LENGTH, runs[1:], small=runs[0])
    return {"milliseconds": seconds * 1e3, "hardware": f"modelled: {cost.H200.name}"}


def measure_one(folder: Path) -> dict[str, Any]:
    """Compile and check a solution, then time it while no other process does.

    Raises:
        AssertionError: if a result is wrong.
    """
    torch = importlib.import_module("torch")
    sys.path.insert(0, str(folder))
    prefix_sum = importlib.import_module("solution").prefix_sum
    for length in COMPILED:
        _check(torch, prefix_sum, torch.randint(-(2**31), 2**31, (length,), dtype=torch.int32, device="cuda"))
    torch.cuda.synchronize()
    with Path(folder.parent, "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        x = torch.randint(-10, 10, (ELEMENTS,), dtype=torch.int32, device="cuda")
        _check(torch, prefix_sum, x)
        first = _milliseconds(torch, prefix_sum, x, 2)
        calls = max(2, min(50, int(BATCH_MS / first)))
        times = sorted(_milliseconds(torch, prefix_sum, x, calls) for _ in range(7))
    return {
        "milliseconds": statistics.median(times),
        "range": [times[0], times[-1]],
        "hardware": torch.cuda.get_device_name(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": importlib.import_module("triton").__version__,
        },
    }


def _check(torch: Any, prefix_sum: Any, x: Any) -> None:
    before = torch.cumsum(x > 0, 0)
    before[1:] = before[:-1].clone()
    before[0] = 0
    truth = torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)
    result = prefix_sum(x)
    assert torch.equal(result, truth), f"wrong result for {x.numel()} values"


def _milliseconds(torch: Any, prefix_sum: Any, x: Any, calls: int) -> float:
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        prefix_sum(x)
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) / calls


def summarised(profile: str, outcomes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the times of ``outcomes`` by name, with their circumstances."""
    timed = {name: outcome for name, outcome in outcomes.items() if "milliseconds" in outcome}
    some = next(iter(timed.values()), {})
    return {
        "profile": profile,
        "hardware": some.get("hardware"),
        "versions": some.get("versions", {}),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "milliseconds": {name: round(outcome["milliseconds"], 6) for name, outcome in timed.items()},
        "ranges": {name: outcome["range"] for name, outcome in timed.items() if "range" in outcome},
        "messages": {name: outcome["message"] for name, outcome in outcomes.items() if "message" in outcome},
    }


def markdown(modelled: Mapping[str, float], measured: Mapping[str, float]) -> str:
    """Return a Markdown table of the times in milliseconds, the fastest first."""
    lines = ["| solution | modelled ms | measured ms | measured/modelled |", "| --- | --- | --- | --- |"]
    for name, ms in sorted(measured.items(), key=lambda item: item[1]):
        model = modelled.get(name)
        times = f"{model:.3f} | {ms:.3f} | {ms / model:.2f}" if model else f"not modelled | {ms:.3f} | "
        lines.append(f"| `{name}` | {times} |")
    return "\n".join(lines)


def summary(modelled: Mapping[str, float], measured: Mapping[str, float]) -> str:
    """Return the worst ratio, the larger over the smaller time, and Spearman's rank correlation, in words."""
    measured = {name: ms for name, ms in measured.items() if name in modelled}
    ratios = {name: max(ms / modelled[name], modelled[name] / ms) for name, ms in measured.items()}
    worst = max(ratios, key=lambda name: ratios[name])
    names = list(measured)
    ranks = (_ranks([times[name] for name in names]) for times in (modelled, measured))
    return f"worst ratio {ratios[worst]:.2f} (`{worst}`), rank correlation {statistics.correlation(*ranks):.2f}"


def _ranks(values: Sequence[float]) -> list[int]:
    ordered = sorted(values)
    return [ordered.index(value) for value in values]


def plot(modelled: Mapping[str, float], measured: Mapping[str, float], path: Path) -> None:
    """Draw measured over modelled times, both logarithmic; needs matplotlib."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only who draws needs it

    measured = {name: ms for name, ms in measured.items() if name in modelled}
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    ends = [min(modelled.values()) / 2, max(measured.values()) * 2]
    axes.loglog(ends, ends, color="grey", linewidth=1, label="equal")
    axes.fill_between(
        ends, [end / 1.5 for end in ends], [end * 1.5 for end in ends], color="grey", alpha=0.15, label="within 1.5"
    )
    axes.loglog([modelled[name] for name in measured], list(measured.values()), "o")
    for name, ms in measured.items():
        axes.annotate(name, (modelled[name], ms), xytext=(6, -10), textcoords="offset points")
    axes.set(xlabel="modelled, ms", ylabel="measured, ms", title="triton_cumsum, 100,000,000 elements")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compare modelled times with measured ones.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("model", "model the time of each variant"), ("measure", "time each variant on this GPU")):
        command = commands.add_parser(name, help=text)
        command.add_argument("out", type=Path)
        command.add_argument("names", nargs="*", help="these only")
    for name in ("model-one", "measure-one"):
        commands.add_parser(name, help="the same of one solution").add_argument("folder", type=Path)
    showing = commands.add_parser("show", help="print the table of two such files")
    showing.add_argument("modelled", type=Path)
    showing.add_argument("measured", type=Path)
    showing.add_argument("--plot", type=Path)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    if options.command in {"model-one", "measure-one"}:
        work_on_one = model_one if options.command == "model-one" else measure_one
        print(json.dumps(work_on_one(options.folder)))
    elif options.command == "show":
        modelled, measured = (
            json.loads(path.read_text(encoding="utf-8"))["milliseconds"]
            for path in (options.modelled, options.measured)
        )
        print(markdown(modelled, measured))
        print(summary(modelled, measured))
        if options.plot:
            plot(modelled, measured, options.plot)
    else:
        one, profile = (options.command + "-one", "cpu" if options.command == "model" else "gpu")
        outcomes = summarised(profile, over_all(partial(in_process, one), options.names, min(cores, 14)))
        options.out.write_text(json.dumps(outcomes, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
