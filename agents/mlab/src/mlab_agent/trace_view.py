"""Show a trace as text for people: one line for an event as it happens, or pages."""

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
        step = event["step"] if event["kind"] == REWIND else step + (event["kind"] == "observation")
        if event["kind"] == "reply":
            spending = models.setdefault(event.get("model", ""), Spending())
            spending.add(event["prompt_tokens"], event["completion_tokens"], event["dollars"])
        cut = {key: _cut(value, None if whole else _TEXT_CHARS) for key, value in event.items()}
        if event["kind"] == "action":
            yield _action(event, step, whole=whole)
        elif (show := _PAGES.get(event["kind"])) and (text := show(cut)):
            yield text
    total = Spending()
    for spending in models.values():
        total.merge(spending)
    yield f"Spent: {total.tokens} tokens, {total.cost}"
    if len(models) > 1:
        yield "\n".join(f"  {name}: {spending.tokens} tokens, {spending.cost}" for name, spending in models.items())


def one_line(event: Event, step: int) -> str | None:
    """Return an event in one line, for progress messages; None for events that are not reported."""
    if event["kind"] == "action":
        arguments = json.dumps(event["input"], ensure_ascii=False)
        shortened = arguments if len(arguments) <= _LINE_CHARS else arguments[:_LINE_CHARS] + "…"
        text = f"step {step + 1}: {event['action']} {shortened}"
    elif event["kind"] in _LINES:
        text = _LINES[event["kind"]](event)
    else:
        return None
    return f"[{duration(event['elapsed'])}] {text}"


def _action(event: Event, step: int, *, whole: bool) -> str:
    fields = [f"{name}: {_cut(text, None if whole else _TEXT_CHARS)}" for name, text in event["fields"].items()]
    arguments = _cut(json.dumps(event["input"], ensure_ascii=False, indent=2), None if whole else _INPUT_CHARS)
    head = f"=== Step {step + 1}, after {duration(event['elapsed'])}"
    return "\n".join([head, *fields, f"Action: {event['action']}", f"Action Input: {arguments}"])


def _resumed(event: Event) -> str:
    sessions = {
        "same": ", in the same session of the server",
        "new": ", in a new session, as the server has the earlier one no more: with the files of the last snapshot; "
        "attempts, hours and processes of the earlier one are not in it",
    }
    return "resumed" + sessions.get(event.get("session") or "", "")


def _rewound(event: Event) -> str:
    text = f"back to how things were after step {event['step']}; the later steps are set aside"
    return text + ("; the server's attempts and hours are not undone" if event["session"] == "same" else "")


_LINES: Mapping[str, Callable[[Event], str]] = {
    "malformed": lambda event: f"a reply that cannot be acted on: {event['text'].splitlines()[0]}",
    "retry": lambda event: f"the models' server failed, again in {event['wait_s']:.1f} s: {event['error'][:200]}",
    "folded": lambda _event: "older steps went into the research log",
    "reward": lambda event: f"reward {event['reward']:z.4f}",
    "server": lambda event: event["text"],
    "resume": _resumed,
    REWIND: _rewound,
    "end": lambda event: f"the end: {event['reason']}",
}
_PAGES: Mapping[str, Callable[[Event], str]] = {
    "start": lambda event: f"Task:\n{event['task']}\n",
    "message": lambda event: f"Message:\n{event['text']}\n",
    "observation": lambda event: f"Observation:\n{event['text']}\n",
    "malformed": lambda event: f"--- Not a step:\n{event['reply']}\nObservation:\n{event['text']}\n",
    "reply": lambda event: (
        "" if event["purpose"] == STEP else f"--- Asked {event.get('model')} ({event['purpose']}): {event['text']}\n"
    ),
    "folded": lambda event: "--- Into the research log:\n" + "\n".join(entry["text"] for entry in event["entries"]),
    "condensed": lambda event: f"--- The log's oldest {event['count']} entries in one:\n{event['text']}\n",
    "reward": lambda event: f"--- Reward: {event['reward']:z.4f}",
    "resume": lambda event: f"--- After {duration(event['elapsed'])} {_resumed(event)}\n",
    REWIND: lambda event: f"--- {_rewound(event).capitalize()}\n",
    "server": lambda event: f"--- {event['text']}\n",
    "retry": lambda event: f"--- Attempt {event['attempt']} of a call, after: {event['error']}\n",
    "wait": lambda event: f"--- Waited {event['ended'] - event['began']:.1f} s: {event['reason']}\n",
    "call failed": lambda event: f"--- A call failed: {event['error']}\n",
    "dialect": lambda event: f"--- The server refused a part of the request: {event['because']}\n",
    "mistake": lambda event: f"--- A mistake in {event['where']}:\n{event['traceback']}\n",
    "end": lambda event: (
        f"=== The end, after {duration(event['elapsed'])}: {event['reason']}\n{event['detail']}\n"
        f"Answer: {event['answer']}"
    ),
}


def _cut(value: Any, limit: int | None) -> Any:
    return truncate_middle(value, limit) if isinstance(value, str) and limit else value
