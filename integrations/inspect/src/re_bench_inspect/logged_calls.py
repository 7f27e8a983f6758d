"""What an agent did in a sample, as lines of a server's transcript: from the events of Inspect's log."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from inspect_ai.event import InfoEvent, SandboxEvent, ToolEvent

from re_bench.data.jsonl import json_object
from re_bench_evaluation.report.text import plain_json, shortened
from re_bench_evaluation.trajectory import arguments_text

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence

    from inspect_ai.event import Event

_LONGEST_TEXT = 2000
_MOST = 100_000
_ACTION = re.compile(r"(?:^|\n\n)\*\*Action: ([^\n]*)\*\*\n\n(`{3,})json\n(.*?)\n\2", re.DOTALL)
"""An action of mlab and its arguments in Markdown, as :mod:`re_bench_inspect.mlab.steps` writes them."""
_OBSERVATION = "**Observation**\n\n"


class Call(NamedTuple):
    """A call of a tool, an action of mlab, or what was done in the sandbox."""

    ended: dt.datetime
    name: str
    text: str
    output: str


def transcript_lines(events: Sequence[Event]) -> Iterator[bytes]:
    """Yield the actions of mlab, else the calls of tools, else what was done in the sandbox, without newlines."""
    calls = list(_actions(events)) or list(_tool_calls(events)) or list(_sandbox_calls(events))
    for seq, call in enumerate(calls[:_MOST]):
        entry = {
            "kind": "call",
            "seq": seq,
            "time": call.ended.isoformat(timespec="milliseconds"),
            "tool": call.name,
            "arguments": {"command": shortened(call.text, _LONGEST_TEXT)},
            "output": shortened(call.output, _LONGEST_TEXT),
        }
        yield json.dumps(plain_json(entry)).encode()


def _actions(events: Sequence[Event]) -> Iterator[Call]:
    name = text = ""
    for event in events:
        if not isinstance(event, InfoEvent) or event.source != "mlab" or not isinstance(event.data, str):
            continue
        if event.data.startswith(_OBSERVATION) and name:
            yield Call(event.timestamp, name, text, _unfenced(event.data.removeprefix(_OBSERVATION)))
            name = ""
        elif (match := _ACTION.search(event.data)) is not None:
            name, _fence, arguments = match.groups()
            values = json_object(arguments)
            text = arguments if values is None else arguments_text(values)


def _unfenced(text: str) -> str:
    """Return the text of a Markdown block, without its first and last line."""
    return "\n".join(text.split("\n")[1:-1])


def _tool_calls(events: Sequence[Event]) -> Iterator[Call]:
    for event in events:
        if isinstance(event, ToolEvent):
            result = event.error.message if event.error else event.result
            output = result if isinstance(result, str) else _result_text(result)
            yield Call(event.completed or event.timestamp, event.function, arguments_text(event.arguments), output)


def _result_text(result: object) -> str:
    """Return the texts of a result of several parts."""
    parts = result if isinstance(result, list) else [result]
    return "\n".join(getattr(part, "text", None) or str(getattr(part, "type", part)) for part in parts)


def _sandbox_calls(events: Sequence[Event]) -> Iterator[Call]:
    for event in events:
        if isinstance(event, SandboxEvent):
            text = event.cmd or event.file or ""
            yield Call(event.completed or event.timestamp, event.action, text, event.output or "")
