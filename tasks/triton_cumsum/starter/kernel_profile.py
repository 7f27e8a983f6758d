"""Profile the kernels of solution.py: ``python check.py --device cuda --profile`` writes a text file.

The script uses Nsight Compute if it is installed and allowed to read the GPU's counters. Otherwise it uses
torch.profiler (CUPTI), which reports the kernels with their times and launch shapes, but no counters. The script is
only for your convenience; it is not part of scoring.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ELEMENTS = 100_000_000
BYTES_PER_ELEMENT = 8
CALLS = 5
NSIGHT = Path("/opt/nvidia/nsight-compute")
LIMIT_S = 300
SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "LaunchStats", "Occupancy", "SchedulerStats", "WarpStateStats")
COLUMNS = ("us a call", "launches", "grid", "block", "registers", "shared bytes", "kernel")


class NoProfileError(Exception):
    """The profiler is unavailable; the message gives the reason."""


def write_profile(file: Path) -> int:
    """Write a profile at 100,000,000 elements to ``file``; return 0, or 1 if no profiler is available."""
    for name, profile in (("Nsight Compute", by_ncu), ("torch.profiler", by_torch)):
        try:
            text = profile()
        except NoProfileError as error:
            print(f"no profile by {name}: {error}")
            continue
        file.write_text(text, encoding="utf-8")
        print(f"profile by {name}: {file}")
        return 0
    print("no profile was written; the GPU's owner decides who may profile on it")
    return 1


def by_ncu() -> str:
    """Return the output of Nsight Compute for the kernels of one call.

    Raises:
        NoProfileError: if Nsight Compute is missing, or may not read the counters.
    """
    ncu = shutil.which("ncu") or max(NSIGHT.glob("*/ncu"), default=None)
    if ncu is None:
        raise NoProfileError(f"ncu was not found on the PATH or in {NSIGHT}")
    sections = [word for section in SECTIONS for word in ("--section", section)]
    command = [str(ncu), "--clock-control", "none", "--profile-from-start", "off", *sections, sys.executable, __file__]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoProfileError(str(error)) from None
    if "Section:" not in done.stdout:
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR" in line] or lines[-1:] or [f"exit status {done.returncode}"]
        raise NoProfileError(errors[0].strip())
    return done.stdout


def by_torch() -> str:
    """Return a table of the kernels that CUPTI records in ``CALLS`` calls.

    Raises:
        NoProfileError: if CUPTI recorded nothing.
    """
    torch, function, x = prepare()
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace.json"
        try:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
                for _ in range(CALLS):
                    function(x)
                torch.cuda.synchronize()
            profiler.export_chrome_trace(str(trace))
        except RuntimeError as error:
            raise NoProfileError(f"{error}") from None
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    work = [event for event in events if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}]
    if not work:
        raise NoProfileError("CUPTI recorded no work on the GPU; it is not permitted here, or its library is missing")
    return describe(torch.cuda.get_device_name(), work)


def describe(device: str, events: list[dict[str, Any]]) -> str:
    """Return a table of the kernels of ``CALLS`` calls, whose events are in Chrome's trace format."""
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for event in events:
        details = event.get("args", {})
        keys = ("grid", "block", "registers per thread", "shared memory")
        shape = (str(details.get(key, "-")).replace(" ", "") for key in keys)
        groups[*shape, event["name"]].append(float(event["dur"]))
    rows = [(f"{sum(times) / CALLS:.1f}", f"{len(times) / CALLS:g}", *key) for key, times in groups.items()]
    rows.sort(key=lambda row: -float(row[0]))
    total = sum(sum(times) for times in groups.values()) / CALLS
    widths = [max(len(row[column]) for row in (COLUMNS, *rows)) for column in range(len(COLUMNS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (COLUMNS, *rows)]
    rate = BYTES_PER_ELEMENT * ELEMENTS / total / 1e3
    head = f"{device}: {CALLS} calls at {ELEMENTS:,} elements, {total:.1f} us of work on the GPU each,"
    return "\n".join([f"{head} {rate:.0f} GB/s if each element is read and written once", "", *table, ""])


def prepare() -> tuple[Any, Any, Any]:
    """Return torch, the solution's function and an input on the GPU, after compiling the kernels."""
    sys.path.insert(0, str(Path(__file__).parent))
    torch, solution = importlib.import_module("torch"), importlib.import_module("solution")
    x = torch.randint(-10, 10, (ELEMENTS,), dtype=torch.int32, device="cuda")
    for _ in range(2):
        solution.prefix_sum(x)
    torch.cuda.synchronize()
    return torch, solution.prefix_sum, x


def main() -> None:
    """Make the call that Nsight Compute profiles."""
    torch, function, x = prepare()
    torch.cuda.cudart().cudaProfilerStart()
    function(x)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


if __name__ == "__main__":
    main()
