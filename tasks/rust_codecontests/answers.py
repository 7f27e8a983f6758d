"""What a submission answers: its process is asked for programs here, batch by batch; nothing it says is believed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dataset
from judge.toolchain import find_toolchain
from rules import SOURCE_BYTES

from re_bench.sandbox.untrusted import SubmissionFaultError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dataset import Problem
    from rules import Rules

    from re_bench.scoring.score import Job
    from re_bench_gateway import Gateway

__all__ = ["MODULE", "Answer", "answers"]

MODULE = "solve_code_contests_rust"
FAILURES = ("exception", "not a string", "not Unicode text", "out of time", "too long")
"""What the harness may say went wrong with a problem."""
ENDED, MALFORMED = "process ended", "malformed reply"
"""What may have gone wrong with its whole batch."""
_GRACE_S = 10.0
_TEXT = 500


@dataclass(frozen=True)
class Answer:
    """What a submission answered to one problem: a program, or why there is none."""

    source: str | None
    failure: str = ""
    """One of a few fixed words, which its author may read."""
    text: str = ""
    """In the submission's own words, which its author may not read: it could put the problem there."""


def answers(job: Job, rules: Rules, gateway: Gateway, problems: Sequence[Problem]) -> Iterator[Answer]:
    """Yield the submission's answers to all problems, in order. Each batch gets a process of its own.

    Raises:
        InvalidSubmissionError: if the module cannot be imported, before any problem is shown to it.
    """
    for start in range(0, len(problems), rules.batch):
        batch = problems[start : start + rules.batch]
        job.progress(f"problems {start + 1} to {start + len(batch)} of {len(problems)}")
        with ExitStack() as stack:
            process = stack.enter_context(job.untrusted("solving.py", **_surroundings(rules, gateway)))
            asked = {"directory": str(job.submission), "module": MODULE}
            try:
                process.call("load", asked, timeout_s=rules.load_s)
            except SubmissionFaultError as fault:
                if start == 0:
                    raise
                # By now it has seen problems, so that its words must not reach its author.
                yield from [Answer(None, ENDED, str(fault)[:_TEXT])] * len(batch)
                continue
            asked_for = {
                "problems": [dataset.shown(problem) for problem in batch],
                "socket": str(gateway.socket),
                "token": gateway.token,
                "streams": rules.streams,
                "seconds": rules.batch_s,
            }
            rooms = [SOURCE_BYTES] * len(batch)
            try:
                reply = process.call("solve", asked_for, outputs=rooms, timeout_s=rules.batch_s + _GRACE_S)
            except SubmissionFaultError as fault:
                yield from [Answer(None, ENDED, str(fault)[:_TEXT])] * len(batch)
                continue
        yield from _read(reply.value, reply.outputs)


def _surroundings(rules: Rules, gateway: Gateway) -> dict[str, Any]:
    """Return what the process sees beside the submission: the gateway's socket and Rust, which it may use."""
    sysroot = find_toolchain().sysroot
    search = f"{Path(sys.prefix, 'bin')}:{sysroot / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    shown = (gateway.socket, *([] if sysroot == Path("/usr") else [sysroot]))
    return {"also": shown, "environment": {"PATH": search, "RUST_EDITION": rules.edition}}


def _read(said: Any, outputs: Sequence[bytes]) -> list[Answer]:
    """Return the answers to a batch; one malformed answer makes all of them worthless."""
    if not isinstance(said, list) or len(said) != len(outputs):
        return [Answer(None, MALFORMED)] * len(outputs)
    found = [_one(each, output) for each, output in zip(said, outputs, strict=True)]
    return [Answer(None, MALFORMED)] * len(outputs) if None in found else [each for each in found if each]


def _one(said: Any, output: bytes) -> Answer | None:
    """Return an answer, or None if it is malformed."""
    if not isinstance(said, dict):
        return None
    size, failure = said.get("bytes"), said.get("failed")
    if failure is not None:
        return Answer(None, failure, str(said.get("text", ""))[:_TEXT]) if failure in FAILURES else None
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(output):
        return None
    try:
        return Answer(output[:size].decode())
    except UnicodeDecodeError:
        return Answer(None, "not Unicode text")
