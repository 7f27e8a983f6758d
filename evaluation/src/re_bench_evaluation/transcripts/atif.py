"""Documents in ATIF: steps one after another, numbered from 1, with sums of tokens and dollars at the end.

The format is Harbor's RFC 0001. What it has no field for stands in ``extra``. Scores and the end are steps of the
source ``system``, whose ``extra.event`` is ``attempt`` or ``end``, so that an attempt in the middle is not taken for
the end of the work.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from re_bench_evaluation.report.text import plain_json
from re_bench_evaluation.trajectory import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench.runs.attempts import Attempt
    from re_bench_evaluation.trajectory import Spent, Step, Trajectory

VERSION = "ATIF-v1.7"
_MOST_DOLLARS = 1e9
"""No call costs more; and sums stay what a float holds."""


@dataclass
class Totals:
    """What the calls of a trajectory's models have taken together."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    calls: int = 0
    unpriced_calls: int = 0
    """Calls whose price is not known; ``dollars`` lacks them."""


@dataclass
class Document:
    """A document that steps are added to."""

    session: str
    """The identifier of the run."""
    agent: dict[str, Any]
    """``name``, ``version`` and, where it is known, ``model_name``."""
    extra: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)

    def add(self, step: Step) -> None:
        """Append a step; fields that it does not have are left out."""
        number, time = len(self.steps) + 1, instant(step.time)
        extra = ({"event": step.event} if step.event else {}) | step.extra
        fields: dict[str, Any] = {"step_id": number}
        fields |= {"timestamp": time} if time else {}
        fields |= {"source": step.source, "message": step.text}
        fields |= {"model_name": step.model} if step.model else {}
        if step.spent:
            fields |= {"metrics": metrics} if (metrics := self._count(step.spent)) else {}
            fields |= {"llm_call_count": 1}
        elif step.extra.get("repeated"):
            fields |= {"llm_call_count": 0}
        fields |= {"extra": extra} if extra else {}
        name = f"call-{number}"
        if step.tool:
            call = {"tool_call_id": name, "function_name": step.tool, "arguments": step.arguments}
            fields |= {"tool_calls": [call]}
        if step.output is not None:
            result: dict[str, Any] = {"source_call_id": name} if step.tool else {}
            result |= {"content": step.output} | ({"extra": step.result} if step.result else {})
            fields |= {"observation": {"results": [result]}}
        self.steps.append(fields)

    def add_attempt(self, attempt: Attempt, time: object) -> None:
        """Append an attempt of the log, as what it is: a score on the way, and not the end."""
        stamp = {"timestamp": moment} if (moment := instant(time)) else {}
        extra = {"event": "attempt", **_attempt_fields(attempt)}
        text = _attempt_line(attempt)
        head = {"step_id": len(self.steps) + 1, **stamp}
        self.steps.append(head | {"source": "system", "message": text, "extra": extra})

    def _count(self, spent: Spent) -> dict[str, Any]:
        """Count a call of a model, and return the metrics of its step; what is no number is left out."""
        metrics: dict[str, Any] = {}
        self.totals.calls += 1
        for name, value in (
            ("prompt_tokens", spent.prompt_tokens),
            ("completion_tokens", spent.completion_tokens),
        ):
            if isinstance(value, int) and value >= 0:
                metrics[name] = value
                setattr(self.totals, name, getattr(self.totals, name) + value)
        dollars = spent.dollars
        if isinstance(dollars, int | float) and 0 <= dollars <= _MOST_DOLLARS:
            metrics["cost_usd"] = dollars
            self.totals.dollars += dollars
        else:
            self.totals.unpriced_calls += 1
        return metrics

    def to_json(self) -> str:
        """Return the document, the same for the same steps each time.

        A document has at least one step: where nothing is known, one of the system says so.
        """
        if not self.steps:
            self.steps.append({"step_id": 1, "source": "system", "message": "Nothing of this run was recorded."})
        totals = self.totals
        metrics: dict[str, Any] = {"total_steps": len(self.steps)}
        if totals.calls:
            metrics |= {
                "total_prompt_tokens": totals.prompt_tokens,
                "total_completion_tokens": totals.completion_tokens,
                "extra": {"calls": totals.calls, "unpriced_calls": totals.unpriced_calls},
            }
            if not totals.unpriced_calls:
                metrics["total_cost_usd"] = round(totals.dollars, 9)
        document = {
            "schema_version": VERSION,
            "session_id": self.session,
            "agent": {name: value for name, value in self.agent.items() if value is not None},
            "steps": self.steps,
            "final_metrics": metrics,
            "extra": self.extra,
        }
        return json.dumps(plain_json(document), ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def document_of(
    trajectory: Trajectory,
    session: str,
    agent: Mapping[str, Any],
    extra: Mapping[str, Any],
    attempts: Sequence[Attempt] | None,
) -> Document:
    """Return the document of a trajectory.

    Args:
        trajectory: the steps.
        session: the identifier of the run.
        agent: ``name``, ``version`` and ``model_name`` of the agent, as far as they are known.
        extra: what the document says besides.
        attempts: those of the log, which has the scores that a task hides from its agent. In a transcript they come
            after the calls that asked for them, in a trace at their time; None takes the rewards of the trace.
    """
    about = {"name": UNKNOWN, "version": UNKNOWN, **agent}
    if trajectory.model:
        about["model_name"] = trajectory.model
    document = Document(session, about, {**extra, **trajectory.about})
    if trajectory.kind == "trace":
        _add_by_time(document, trajectory, attempts)
    else:
        _add_by_number(document, trajectory, attempts or ())
    return document


def _add_by_time(document: Document, trajectory: Trajectory, attempts: Sequence[Attempt] | None) -> None:
    waiting = list(attempts or ())
    for step in trajectory.steps:
        if step.event == "attempt" and attempts is not None:
            continue
        now = instant(step.time) or ""
        while waiting and (step.event == "end" or (instant(waiting[0].time) or "") <= now):
            _add_logged(document, waiting.pop(0))
        document.add(step)
    for attempt in waiting:
        _add_logged(document, attempt)


def _add_by_number(document: Document, trajectory: Trajectory, attempts: Sequence[Attempt]) -> None:
    by_number = {attempt.n: attempt for attempt in attempts}
    for step in trajectory.steps:
        if step.event != "attempt":
            document.add(step)
        elif (attempt := by_number.pop(step.extra["attempt"], None)) is not None:
            document.add_attempt(attempt, step.time)
    for attempt in by_number.values():  # of calls that are not in the transcript
        _add_logged(document, attempt)


def _add_logged(document: Document, attempt: Attempt) -> None:
    document.add_attempt(attempt, attempt.time)


def instant(time: object) -> str | None:
    """Return a time, in seconds since 1970 or as ISO 8601, as ISO 8601 in UTC; None if it is none."""
    try:
        if isinstance(time, str):
            moment = dt.datetime.fromisoformat(time)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        elif isinstance(time, int | float):
            moment = dt.datetime.fromtimestamp(time, dt.UTC)
        else:
            return None
        return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def _attempt_fields(attempt: Attempt) -> dict[str, Any]:
    """Return what the step of an attempt has in ``extra``."""
    fields = {
        "attempt": attempt.n,
        "status": attempt.status,
        "raw": attempt.raw,
        "reward": attempt.reward,
        "submission": attempt.submission or None,
        "seconds": attempt.seconds,
    }
    return fields | ({} if attempt.final_raw is None else {"final_raw": attempt.final_raw})


def _attempt_line(attempt: Attempt) -> str:
    """Return an attempt as text."""
    score = "" if attempt.raw is None else f": raw {attempt.raw:z.6g}"
    score += "" if attempt.reward is None else f", reward {attempt.reward:z.4f}"
    message = f"\n{attempt.message}" if attempt.message else ""
    return f"Attempt {attempt.n} was scored ({attempt.status}){score}. It is an attempt, not the end.{message}"
