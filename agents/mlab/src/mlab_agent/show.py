"""A trace as people read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mlab_agent.budget import duration
from mlab_agent.cutting import cut_middle
from mlab_agent.state import STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["one_line", "pages"]

_SHOWN, _INPUT, _LINE = 2_000, 600, 100
Event = dict[str, Any]


def pages(events: Iterable[Event], *, whole: bool = False) -> Iterator[str]:
    """Return a trace as text, a piece for each event worth showing; long texts are cut unless all is wanted."""
    step, tokens, dollars = 0, 0, 0.0
    for event in events:
        if event["kind"] == "observation":
            step += 1
        if event["kind"] == "reply":
            tokens += event["prompt_tokens"] + event["completion_tokens"]
            dollars += event["dollars"]
        text = _page(event, step, None if whole else _SHOWN)
        if text:
            yield text
    yield f"Spent: {tokens} tokens, ${dollars:.4f}"


def one_line(event: Event, step: int) -> str | None:
    """Return what an event says in one line, for those who watch; None for what need not be watched."""
    writer = _LINES.get(event["kind"])
    return f"[{duration(event['elapsed'])}] {writer(event, step)}" if writer else None


def _action_line(event: Event, step: int) -> str:
    given = json.dumps(event["input"], ensure_ascii=False)
    return f"step {step + 1}: {event['action']} {given if len(given) <= _LINE else given[:_LINE] + '…'}"


_LINES: Mapping[str, Callable[[Event, int], str]] = {
    "action": _action_line,
    "malformed": lambda event, _step: f"a reply that cannot be acted on: {event['text'].splitlines()[0]}",
    "retry": lambda event, _step: (
        f"the models' server failed, again in {event['wait_s']:.1f} s: {event['error'][:200]}"
    ),
    "folded": lambda event, _step: f"{len(event['entries'])} older steps went into the research log",
    "reward": lambda event, _step: f"reward {event['reward']:.4f}",
    "end": lambda event, _step: f"the end: {event['reason']}",
}


def _page(event: Event, step: int, most: int | None) -> str | None:
    writer = _WRITERS.get(event["kind"])
    if writer is None:
        return None
    shown = {key: _cut(value, most) if isinstance(value, str) else value for key, value in event.items()}
    return writer(shown, step, most)


def _action(event: Event, step: int, most: int | None) -> str:
    fields = [f"{name}: {_cut(text, most)}" for name, text in event["fields"].items()]
    given = _cut(json.dumps(event["input"], ensure_ascii=False, indent=2), most and _INPUT)
    head = f"=== Step {step + 1}, after {duration(event['elapsed'])}"
    return "\n".join([head, *fields, f"Action: {event['action']}", f"Action Input: {given}"])


def _folded(event: Event, _step: int, most: int | None) -> str:
    entries = "\n".join(f"  {entry['first']}: {_cut(entry['text'], most)}" for entry in event["entries"])
    return f"--- Into the research log:\n{entries}\n"


def _reply(event: Event, _step: int, _most: int | None) -> str | None:
    return None if event["purpose"] == STEP else f"--- Asked the model ({event['purpose']}): {event['text']}\n"


def _end(event: Event, _step: int, _most: int | None) -> str:
    detail = f"\n{event['detail']}" if event["detail"] else ""
    return f"=== The end, after {duration(event['elapsed'])}: {event['reason']}{detail}\nAnswer: {event['answer']}"


_WRITERS: Mapping[str, Callable[[Event, int, int | None], str | None]] = {
    "action": _action,
    "folded": _folded,
    "reply": _reply,
    "end": _end,
    "start": lambda event, _step, _most: f"Task:\n{event['task']}\n",
    "message": lambda event, _step, _most: f"Message:\n{event['text']}\n",
    "observation": lambda event, _step, _most: f"Observation:\n{event['text']}\n",
    "malformed": lambda event, _step, _most: f"--- Not a step:\n{event['reply']}\nObservation:\n{event['text']}\n",
    "condensed": lambda event, _step, _most: (
        f"--- The log's oldest {event['count']} entries in one:\n{event['text']}\n"
    ),
    "reward": lambda event, _step, _most: f"--- Reward: {event['reward']:.4f}",
    "resume": lambda event, _step, _most: f"--- Resumed, after {duration(event['elapsed'])}\n",
    "retry": lambda event, _step, _most: f"--- Attempt {event['attempt']} of a call, after: {event['error']}\n",
    "call failed": lambda event, _step, _most: f"--- A call failed: {event['error']}\n",
    "dialect": lambda event, _step, _most: f"--- The server refused a part of the request: {event['because']}\n",
    "mistake": lambda event, _step, _most: f"--- A mistake in {event['where']}:\n{event['traceback']}\n",
}


def _cut(text: str, most: int | None) -> str:
    return text if most is None else cut_middle(text, most)
