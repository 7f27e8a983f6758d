"""Sessions as text for a terminal. What agents wrote reaches it without control characters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from re_bench.tables import dollars, number, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from re_bench.runs.attempts import Attempt
    from re_bench_server.records.session_files import Summary

_LIST = ("session", "task", "profile", "state", "hours", "waited", "model", "attempts", "best reward", "last activity")
_ATTEMPTS = ("attempt", "time", "status", "raw", "reward", "seconds", "message")
_COMMAND_LINES, _OUTPUT_LINES, _WIDTH = 8, 8, 200


def session_table(summaries: Iterable[Summary]) -> str:
    """Return a table with a line for each session."""
    return table(_LIST, [_row(one) for one in summaries])


def describe_session(
    summary: Summary, attempts: Sequence[Attempt], calls: Sequence[Mapping[str, Any]], *, full: bool
) -> str:
    """Return a session's summary, its attempts and calls.

    Args:
        summary: the session in a line.
        attempts: its attempts.
        calls: its calls, or the last of them.
        full: whether to show whole commands and outputs.
    """
    lines = [session_table([summary])]
    if summary.ended is not None:
        lines.append(f"ended {summary.ended}" + (f": {printable(summary.reason)}" if summary.reason else ""))
    if summary.max_attempts is not None:
        lines.append(f"{summary.scored} of {summary.max_attempts} attempts are used up")
    if attempts:
        lines += ["", table(_ATTEMPTS, [_attempt_row(attempt) for attempt in attempts])]
    for call in calls:
        lines += ["", *_call_lines(call, full=full)]
    if not calls:
        lines += ["", "no commands are recorded"]
    return "\n".join(lines)


def printable(text: object) -> str:
    """Return text that a terminal shows and does not obey: control characters but line ends and tabs are replaced."""
    clean = str(text).replace("\r\n", "\n")
    return "".join(
        character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for character in clean
    )


def _row(one: Summary) -> list[str]:
    return [
        one.name,
        printable(one.task or "-"),
        printable(one.profile or "-"),
        one.state,
        number(one.hours_used, 2),
        number(one.hours_waited, 2),
        dollars(one.model_dollars),
        str(one.attempts),
        number(one.best_reward),
        one.last_activity or "-",
    ]


def _attempt_row(attempt: Attempt) -> list[str]:
    raw = "-" if attempt.raw is None else f"{attempt.raw:z.6g}"
    message = printable(attempt.message).replace("\n", " ")[:_WIDTH]
    seconds = number(attempt.seconds, 1)
    return [str(attempt.n), attempt.time, attempt.status, raw, number(attempt.reward), seconds, message]


def _call_lines(call: Mapping[str, Any], *, full: bool) -> list[str]:
    arguments, metadata = call.get("arguments") or {}, call.get("metadata") or {}
    command = arguments.get("command", json.dumps(arguments))
    took = f"{call.get('seconds', 0.0):.1f} s"
    end = _how_it_ended(call, metadata)
    shown = printable(command).split("\n"), printable(call.get("output", "")).rstrip("\n").split("\n")
    if not full:
        shown = _beginning(shown[0], _COMMAND_LINES), _end(shown[1], _OUTPUT_LINES)
    cut = call.get("cut")
    return [
        f"[{call['seq']}] {call.get('time', '')} {call.get('tool', '')}, {end}, {took}",
        *(f"  $ {line}" for line in shown[0]),
        *(f"    {line}" for line in shown[1]),
        *([f"    (cut in the transcript: {cut})"] if cut else []),
    ]


def _how_it_ended(call: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    if call.get("tool") != "bash":
        return printable(metadata.get("status", "error"))
    if metadata.get("timed_out"):
        return "timed out"
    status = metadata.get("exit_status")
    return "failed" if status is None else f"exit status {status}"


def _beginning(lines: list[str], most: int) -> list[str]:
    kept = [_narrow(line) for line in lines[:most]]
    return kept + ([f"... ({len(lines) - most} more lines)"] if len(lines) > most else [])


def _end(lines: list[str], most: int) -> list[str]:
    left_out = [f"... ({len(lines) - most} lines before)"] if len(lines) > most else []
    return left_out + [_narrow(line) for line in lines[-most:]]


def _narrow(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..."
