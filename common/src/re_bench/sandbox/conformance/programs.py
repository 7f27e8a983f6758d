"""Checks of how a program's input, output and time are handled."""

from __future__ import annotations

import os
import resource
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from re_bench.sandbox.conformance.attack import LIMITS, MARK, Check, attack, fail_if, register, send
from re_bench.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.limits import Limits
    from re_bench.sandbox.process import Finished
    from re_bench.sandbox.spec import Backend

CHECKS: dict[str, Check] = {}
check = register(CHECKS)

_SHORT = replace(LIMITS, wall_s=0.5)
_SOON_S = 20.0  # after the time limit, on a busy machine
_STAYS_S = 60  # of what is to be stopped, so long that an end by itself is told from one that was made
_GAP = 100  # characters of the line that says how much was left out


def _read_input() -> list[str]:
    """Attack: read what the user types."""
    got = [] if os.read(0, 1) == b"" else ["standard input has something to read"]
    if any(map(os.isatty, range(3))):
        got.append("there is a terminal")
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        got.append("the terminal of the user opens")
    return got


@check
def standard_input(backend: Backend, scratch: Path) -> None:
    """Standard input is at its end, and there is no terminal."""
    del scratch
    fail_if(attack(backend, _read_input))


def _print_much(mebibytes: int) -> bool:
    """Attack: print so much that whoever keeps it has none left."""
    block = b"x" * (1 << 20)
    for _ in range(mebibytes):
        sent = 0
        while sent < len(block):
            sent += os.write(1, block[sent:])
    return True


@check
def a_gigabyte_of_output(backend: Backend, scratch: Path) -> None:
    """A gigabyte of output is counted, neither kept nor held against the program."""
    del scratch
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    finished = send(backend, _print_much, 954)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    fail_if("" if finished.status == 0 else f"it ended with status {finished.status}: {finished.stopped}")
    fail_if(_too_much(finished, LIMITS))
    fail_if("" if finished.stdout.endswith(f"{MARK}true\n") else "the end of the output is missing")
    fail_if("" if "bytes left out" in finished.stdout else "what was left out is not counted")
    fail_if(f"our own process grew by {grown >> 10} MiB" if grown > 64 << 10 else "")


def _too_much(finished: Finished, limits: Limits) -> str:
    kept = max(len(finished.stdout), len(finished.stderr))
    return f"{kept} characters of output were kept" if kept > (limits.output_kib << 10) + _GAP else ""


def _print_bytes() -> bool:
    """Attack: print what is no text."""
    for stream in (1, 2):
        os.write(stream, bytes(range(256)) * 4 + b"\xff\xfe\x00\xed\xa0\x80\x1b[2J")
    return True


@check
def binary_output(backend: Backend, scratch: Path) -> None:
    """Output that is no text does no harm."""
    del scratch
    finished = send(backend, _print_bytes)
    fail_if("" if finished.status == 0 else f"it ended with status {finished.status}")
    fail_if("" if "\ufffd" in finished.stdout and "\ufffd" in finished.stderr else "the output did not arrive")


def _print_forever(seconds: float) -> bool:
    """Attack: print until stopped."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.write(1, b"x" * 4096)
        os.write(2, b"y" * 4096)
    return True


@check
def time_out_during_output(backend: Backend, scratch: Path) -> None:
    """A program that prints when its time is over is stopped, and its output stays within bounds."""
    del scratch
    finished = send(backend, _print_forever, _STAYS_S, spec=SandboxSpec(limits=_SHORT))
    fail_if(_not_stopped(finished))
    fail_if(_too_much(finished, _SHORT))


def _not_stopped(finished: Finished) -> str:
    if not finished.stopped:
        return f"the time limit did not end it; its status is {finished.status}"
    return f"the end took {finished.seconds:.1f} s" if finished.seconds > _SHORT.wall_s + _SOON_S else ""


def _close_output(seconds: float) -> bool:
    """Attack: close all output and go on."""
    sys.stdout.flush()
    os.closerange(0, 64)
    time.sleep(seconds)
    return True


@check
def closed_output(backend: Backend, scratch: Path) -> None:
    """A program that has closed its output is still watched."""
    del scratch
    fail_if(_not_stopped(send(backend, _close_output, _STAYS_S, spec=SandboxSpec(limits=_SHORT))))


def _count(seconds: float) -> bool:
    """Attack: use the processor for so long, however long that takes on a busy machine."""
    while time.process_time() < seconds:
        pass
    return True


@check
def processor_time(backend: Backend, scratch: Path) -> None:
    """A process is ended when its time on the processor is over."""
    del scratch
    finished = send(backend, _count, 5, spec=SandboxSpec(limits=replace(LIMITS, cpu_s=1, wall_s=60)))
    fail_if("" if finished.status else "five seconds could be used where one is allowed")


def _fail() -> bool:
    """Attack, of a kind: end with a status."""
    os._exit(7)


@check
def exit_status(backend: Backend, scratch: Path) -> None:
    """The exit status of the program comes out."""
    del scratch
    finished = send(backend, _fail)
    fail_if("" if finished.status == 7 else f"7 came out as {finished.status}")  # noqa: PLR2004
