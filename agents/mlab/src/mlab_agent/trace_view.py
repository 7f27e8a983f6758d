"""Show a trace as text for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mlab_agent.budget import duration
from mlab_agent.models import Spending
from mlab_agent.state import REWIND, STEP
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_TEXT_CHARS, _INPUT_CHARS, _LINE_CHARS = 2_000, 600, 100
Event = dict[str, Any]


def pages(events: Iterable[Event], *, whole: bool = False) -> Iterator[str]:
    """Yield a trace as text, a piece for each event worth showing; long texts are truncated unless ``whole``."""
    step = 0
    models: dict[str, Spending] = {}
    for event in events:
        if event["kind"] == "observation":
            step += 1
        if event["kind"] == REWIND:
            step = event["step"]
        if event["kind"] == "reply":
            spending = models.setdefault(event.get("model", ""), Spending())
            spending.add(event["prompt_tokens"], event["completion_tokens"], event["dollars"])
        text = _page(event, step, None if whole else _TEXT_CHARS)
        if text:
            yield text
    yield _spent(models)


def _spent(models: Mapping[str, Spending]) -> str:
    total = Spending()
    for spending in models.values():
        total.merge(spending)
    lines = [f"Spent: {total.tokens} tokens, {total.cost}"]
    if len(models) > 1:
        lines += [f"  {name}: {spending.tokens} tokens, {spending.cost}" for name, spending in models.items()]
    return "\n".join(lines)


def one_line(event: Event, step: int) -> str | None:
    """Return an event in one line, for progress messages; None for events that are not reported."""
    writer = _LINES.get(event["kind"])
    return f"[{duration(event['elapsed'])}] {writer(event, step)}" if writer else None


def _action_line(event: Event, step: int) -> str:
    arguments = json.dumps(event["input"], ensure_ascii=False)
    if len(arguments) > _LINE_CHARS:
        arguments = arguments[:_LINE_CHARS] + "…"
    return f"step {step + 1}: {event['action']} {arguments}"


_SESSIONS = {
    "same": "in the same session of the server",
    "new": "in a new session, as the server has the earlier one no more: with the files of the last snapshot; "
    "attempts, hours and processes of the earlier one are not in it",
}
_NOT_UNDONE = "; the server's attempts and hours are not undone"


def _resumed(event: Event) -> str:
    session = _SESSIONS.get(event.get("session") or "")
    return f"resumed, {session}" if session else "resumed"


def _rewound(event: Event) -> str:
    number = event["number"]
    text = f"back to how things were after step {event['step']}; what came after is set aside as number {number}"
    return text + (_NOT_UNDONE if event["session"] == "same" else "")


_LINES: Mapping[str, Callable[[Event, int], str]] = {
    "action": _action_line,
    "malformed": lambda event, _step: f"a reply that cannot be acted on: {event['text'].splitlines()[0]}",
    "retry": lambda event, _step: (
        f"the models' server failed, again in {event['wait_s']:.1f} s: {event['error'][:200]}"
    ),
    "folded": lambda _event, _step: "older steps went into the research log",
    "reward": lambda event, _step: f"reward {event['reward']:z.4f}",
    "server": lambda event, _step: event["text"],
    "resume": lambda event, _step: _resumed(event),
    REWIND: lambda event, _step: _rewound(event),
    "end": lambda event, _step: f"the end: {event['reason']}",
}


def _page(event: Event, step: int, limit: int | None) -> str | None:
    writer = _WRITERS.get(event["kind"])
    if writer is None:
        return None
    texts = {key: _truncated(value, limit) if isinstance(value, str) else value for key, value in event.items()}
    return writer(texts, step, limit)


def _action(event: Event, step: int, limit: int | None) -> str:
    fields = [f"{name}: {_truncated(text, limit)}" for name, text in event["fields"].items()]
    arguments = _truncated(json.dumps(event["input"], ensure_ascii=False, indent=2), limit and _INPUT_CHARS)
    head = f"=== Step {step + 1}, after {duration(event['elapsed'])}"
    return "\n".join([head, *fields, f"Action: {event['action']}", f"Action Input: {arguments}"])


def _folded(event: Event, _step: int, limit: int | None) -> str:
    entries = "\n".join(f"  {entry['first']}: {_truncated(entry['text'], limit)}" for entry in event["entries"])
    return f"--- Into the research log:\n{entries}\n"


def _reply(event: Event, _step: int, _limit: int | None) -> str | None:
    if event["purpose"] == STEP:
        return None
    return f"--- Asked {event.get('model', 'the model')} ({event['purpose']}): {event['text']}\n"


def _end(event: Event, _step: int, _limit: int | None) -> str:
    detail = f"\n{event['detail']}" if event["detail"] else ""
    return f"=== The end, after {duration(event['elapsed'])}: {event['reason']}{detail}\nAnswer: {event['answer']}"


_WRITERS: Mapping[str, Callable[[Event, int, int | None], str | None]] = {
    "action": _action,
    "folded": _folded,
    "reply": _reply,
    "end": _end,
    "start": lambda event, _step, _limit: f"Task:\n{event['task']}\n",
    "message": lambda event, _step, _limit: f"Message:\n{event['text']}\n",
    "observation": lambda event, _step, _limit: f"Observation:\n{event['text']}\n",
    "malformed": lambda event, _step, _limit: f"--- Not a step:\n{event['reply']}\nObservation:\n{event['text']}\n",
    "condensed": lambda event, _step, _limit: (
        f"--- The log's oldest {event['count']} entries in one:\n{event['text']}\n"
    ),
    "reward": lambda event, _step, _limit: f"--- Reward: {event['reward']:z.4f}",
    "resume": lambda event, _step, _limit: f"--- After {duration(event['elapsed'])} {_resumed(event)}\n",
    REWIND: lambda event, _step, _limit: f"--- {_rewound(event)}\n".replace("--- back", "--- Back"),
    "server": lambda event, _step, _limit: f"--- {event['text']}\n",
    "retry": lambda event, _step, _limit: f"--- Attempt {event['attempt']} of a call, after: {event['error']}\n",
    "wait": lambda event, _step, _limit: f"--- Waited {event['ended'] - event['began']:.1f} s: {event['reason']}\n",
    "call failed": lambda event, _step, _limit: f"--- A call failed: {event['error']}\n",
    "dialect": lambda event, _step, _limit: f"--- The server refused a part of the request: {event['because']}\n",
    "mistake": lambda event, _step, _limit: f"--- A mistake in {event['where']}:\n{event['traceback']}\n",
}


def _truncated(text: str, limit: int | None) -> str:
    return text if limit is None else truncate_middle(text, limit)
