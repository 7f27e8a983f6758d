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

from re_bench.tables import number
from re_bench_evaluation.report.text import as_finite, plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.runs.attempts import Attempt

VERSION = "ATIF-v1.7"
UNKNOWN = "unknown"
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
class Trajectory:
    """A trajectory in the making."""

    session: str
    """The identifier of the run."""
    agent: dict[str, Any]
    """``name``, ``version`` and, where it is known, ``model_name``."""
    extra: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)

    def add(self, source: str, message: str, time: str | None = None, **fields: Any) -> dict[str, Any]:
        """Append a step of the source ``user``, ``agent`` or ``system``, and return it; fields of None are left out."""
        known = {name: value for name, value in fields.items() if value is not None}
        step = {"step_id": len(self.steps) + 1, "timestamp": time, "source": source, "message": message, **known}
        if time is None:
            del step["timestamp"]
        self.steps.append(step)
        return step

    def add_event(self, event: str, message: str, time: str | None = None, **extra: Any) -> dict[str, Any]:
        """Append a step about something that happened to the agent, with ``event`` and ``extra`` in its ``extra``."""
        return self.add("system", message, time, extra={"event": event, **extra})

    def add_attempt(self, attempt: Attempt) -> None:
        """Append an attempt of the log, as what it is: a score on the way, and not the end."""
        self.add_event("attempt", attempt_line(attempt), instant(attempt.time), **attempt_fields(attempt))

    def count(self, prompt_tokens: object, completion_tokens: object, dollars: object) -> dict[str, Any]:
        """Count a call of a model, and return the metrics of its step; what is no number is left out."""
        metrics: dict[str, Any] = {}
        self.totals.calls += 1
        for name, value in (("prompt_tokens", prompt_tokens), ("completion_tokens", completion_tokens)):
            if isinstance(value, int) and value >= 0:
                metrics[name] = value
                setattr(self.totals, name, getattr(self.totals, name) + value)
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
            self.add("system", "Nothing of this run was recorded.")
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


def attempt_fields(attempt: Attempt) -> dict[str, Any]:
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


def attempt_line(attempt: Attempt) -> str:
    """Return an attempt in words."""
    score = "" if attempt.raw is None else f": raw {attempt.raw:z.6g}"
    score += "" if attempt.reward is None else f", reward {attempt.reward:z.4f}"
    message = f"\n{attempt.message}" if attempt.message else ""
    return f"Attempt {attempt.n} was scored ({attempt.status}){score}. It is an attempt, not the end.{message}"


def figure(value: object) -> str:
    """Return a score of a log as a person reads it, a dash for anything else."""
    return number(as_finite(value))


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object of JSON as it is, and nothing for anything else."""
    return value if isinstance(value, dict) else {}
