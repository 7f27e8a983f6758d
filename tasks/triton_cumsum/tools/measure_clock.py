"""Measure the cost of transferring inputs, and the accuracy of the clock, in profile ``gpu`` on this machine's GPU.

``measure_clock.py handover`` repeatedly transfers memory to a second process, as a turn does, and prints the duration
of each step. ``measure_clock.py score [--times N]`` scores a solution (by default the reference) N times, and compares
the clock with the CUDA events of the solution's process. Each result is printed at once, as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from re_bench.guest.device_memory import AddressRange, DeviceMemory, DeviceMemoryError, make_current

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = Path(__file__).parents[1]
ROW = 191 << 21
"""Bytes of an input of 10^8 int32, rounded up to whole pages of 2 MiB."""


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    handover = commands.add_parser("handover", help="time the driver's calls")
    handover.add_argument("--rows", type=int, nargs="+", default=[64, 32], help="inputs per turn")
    handover.add_argument("--times", type=int, default=20)
    handover.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    scoring = commands.add_parser("score", help="score a solution several times")
    scoring.add_argument("--times", type=int, default=10)
    scoring.add_argument("--jobs", type=int, default=1, help="concurrent scoring runs, of which one at a time is timed")
    scoring.add_argument("--solution", type=Path, default=TASK / "reference")
    options = parser.parse_args()
    if options.command == "score":
        score(options.solution, options.times, options.jobs)
    elif options.receive is not None:
        receive(socket.socket(fileno=options.receive))
    else:
        for rows in options.rows:
            hand_over(rows, options.times)


def log(**values: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(values), flush=True)


def hand_over(rows: int, times: int) -> None:
    """Transfer memory with ``rows`` inputs to another process ``times`` times, and print the duration of each step."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    program = [sys.executable, __file__, "handover", "--receive", str(theirs.fileno())]
    with subprocess.Popen(program, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        taken: dict[str, list[float]] = {}
        for number in range(times):
            started = time.perf_counter()
            with DeviceMemory(rows * ROW) as memory:
                taken.setdefault("create", []).append(1e3 * (time.perf_counter() - started))
                values = torch.as_tensor(memory, device="cuda").view(torch.int32)
                values.fill_(number + 1)
                torch.cuda.synchronize()
                request = {"rows": rows, "size": memory.size, "value": number + 1}
                socket.send_fds(ours, [json.dumps(request).encode()], [memory.descriptor])
                reply = json.loads(ours.recv(1 << 16) or b"{}")
                del values
            if "error" in reply or not reply:
                log(rows=rows, round=number, **reply)
            for step, milliseconds in reply.get("ms", {}).items():
                taken.setdefault(step, []).append(milliseconds)
        ours.close()
        process.wait(20)
    for step, milliseconds in taken.items():
        rest = milliseconds[1:] or milliseconds  # the first transfer is slower
        log(
            rows=rows,
            step=step,
            mean_ms=round(statistics.fmean(rest), 4),
            sd_ms=round(statistics.stdev(rest), 4) if len(rest) > 1 else None,
            n=len(rest),
        )


def receive(channel: socket.socket) -> None:
    """Map memory received over ``channel``, as a runner does, and reply with durations, until the channel is closed."""
    torch.zeros(1, device="cuda")
    window = None
    while True:
        data, descriptors, _flags, _address = socket.recv_fds(channel, 1 << 16, 4)
        if not data:
            return
        request = json.loads(data)
        window = window or AddressRange(request["size"])
        try:
            reply: dict[str, Any] = {"ms": _take(window, request, descriptors[0])}
        except (DeviceMemoryError, RuntimeError) as error:
            reply = {"error": str(error)}
        os.close(descriptors[0])
        channel.sendall(json.dumps(reply).encode())


def _take(window: AddressRange, request: dict[str, Any], descriptor: int) -> dict[str, float]:
    rows, size, ms = request["rows"], request["size"], {}
    make_current(0)

    def timed(step: str, work: Callable[[], object]) -> None:
        started = time.perf_counter()
        work()
        ms[step] = 1e3 * (time.perf_counter() - started)

    timed("import and map", lambda: window.map_descriptor(descriptor, size))
    try:
        timed("make accessible", lambda: window.allow(0, size, writable=False))
        part = {"shape": (size // 4,), "typestr": "<i4", "data": (window.start, False), "version": 3}
        values = torch.as_tensor(type("Part", (), {"__cuda_array_interface__": part})(), device="cuda")
        wrong = [row for row in range(rows) if int(values[row * ROW // 4]) != request["value"]]
        if wrong:
            raise RuntimeError(f"rows {wrong} do not contain the written values")
        torch.cuda.synchronize()
    finally:
        timed("unmap", window.unmap)
    return ms


def score(solution: Path, times: int, jobs: int) -> None:
    """Score ``solution`` several times, and compare the clock with the CUDA events of the solution's process."""

    def once(number: int) -> dict[str, Any]:
        program = [sys.executable, str(TASK / "score.py"), "--solution", str(solution), "--profile", "gpu", "--json"]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        try:
            line = summary(json.loads(done.stdout))
        except (ValueError, KeyError) as error:
            line = {"error": repr(error), "stderr": done.stderr[-2000:]}
        log(number=number, **line)
        return line

    with ThreadPoolExecutor(jobs) as pool:
        lines = [line for line in pool.map(once, range(times)) if "reward" in line]
    for name in ("reward", "clock_ms", "clock_over_events", "control_ms", "locked_s", "beyond_compiling_s"):
        values = [line[name] for line in lines if line[name] is not None]
        if len(values) > 1:
            spread = {"mean": statistics.fmean(values), "sd": statistics.stdev(values)}
            rounded = {key: round(value, 5) for key, value in spread.items()}
            log(what=name, n=len(values), **rounded, low=min(values), high=max(values))


def summary(scored: dict[str, Any]) -> dict[str, Any]:
    """Return the relevant figures of a score; ``events_ms`` is an untrusted claim of the submission's process."""
    if scored["status"] != "valid":
        return {key: scored[key] for key in ("status", "message", "seconds")}
    details = scored["details"]
    clock, events = details["clock_ms"]["submission"], details["claimed_ms"] or None  # 0 is not a time
    phases, times = details["phases_s"], details["times"]
    locked = sum(seconds for name, seconds in phases.items() if "waiting" not in name)
    return {
        "reward": round(scored["reward"], 5),
        "clock_ms": round(clock, 5),
        "events_ms": events and round(events, 5),
        "clock_over_events": events and round(clock / events, 5),
        "ours_events_ms": {name: round(times[name]["milliseconds"], 5) for name in ("baseline", "reference")},
        "ours_clock_ms": round(details["clock_ms"]["reference"], 5),
        "control_ms": round(details["control_ms"], 4),
        "controls_ms": {name: [round(value, 3) for value in values] for name, values in details["controls_ms"].items()},
        "calls": details["calls"],
        "phases_s": {name: round(seconds, 3) for name, seconds in phases.items()},
        "turn_steps_s": {
            whose: {name: round(seconds, 3) for name, seconds in steps.items()}
            for whose, steps in details["turn_steps_s"].items()
        },
        "locked_s": round(locked, 2),
        # The check of a submission that has nothing to compile takes 0.2 s.
        "beyond_compiling_s": round(locked - phases["check"], 2),
        "seconds": scored["seconds"],
        "throttled": details["gpu_after"].get("throttle_reasons"),
    }


if __name__ == "__main__":
    main()
