"""Parse actions that models write as text in formats other than MLAgentBench's.

Hermes and Qwen models write ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, which some servers do not
parse. Other models write the object in a code fence, or ``Action: name(argument="x")``.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any, NamedTuple

import json_repair

TAG = re.compile(r"<tool_call>\s*(?=\{)", re.IGNORECASE)
"""The beginning of a tool call as text."""
_AFTER = re.compile(r"\s*(?:</tool_call>|```)", re.IGNORECASE)
_OBJECT = re.compile(r"(?:```\w*\s*|^[ \t]*)(?=\{)", re.MULTILINE)
_FENCE = re.compile(r"\s*(?:```\w*\s*)?")
_FUNCTION = re.compile(r"[\s`*]*([A-Za-z][\w ]*?)\s*\(")
_NAMES = ("name", "action", "tool")
_ARGUMENTS = ("arguments", "parameters", "action_input", "input", "args")
_MAX_ENDS = 200


class TextCall(NamedTuple):
    """A call as text: the action's name, its arguments by name or by position, its span, and notes about repairs."""

    name: str
    arguments: dict[str, Any] | list[Any]
    start: int
    end: int
    notes: tuple[str, ...] = ()


def tagged_call(text: str, end: int, *, truncated: bool) -> TextCall | None:
    """Return the first call in ``<tool_call>`` before ``end``, if any.

    Raises:
        ValueError: if the call cannot be parsed; the message is the reason.
    """
    tag = TAG.search(text, 0, end)
    if tag is None:
        return None
    closing = re.compile("</tool_call>", re.IGNORECASE).search(text, tag.end())
    limit = closing.start() if closing else len(text)
    values, stop, notes = decode_object(text, tag.end(), limit, truncated=truncated)
    call = _call_of(values, tag.start(), stop, text, notes)
    if call is None:
        raise ValueError('the object in <tool_call> needs "name" and "arguments"')
    return call


def fenced_calls(text: str, end: int) -> list[TextCall]:
    """Return the JSON objects before ``end``, in a code fence or at the beginning of a line, that look like calls."""
    calls = []
    for opening in _OBJECT.finditer(text, 0, end):
        try:
            values, stop = json.JSONDecoder(strict=False).raw_decode(text, opening.end())
        except (ValueError, RecursionError):
            continue
        if (call := _call_of(values, opening.start(), stop, text, [])) is not None:
            calls.append(call)
    return calls


def call_after(text: str, start: int) -> TextCall | None:
    """Return the call that begins at ``start``: ``name(argument="x")``, or a JSON object, which may be in a fence."""
    brace = _FENCE.match(text, start)
    if brace is not None and text.startswith("{", brace.end()):
        return next((call for call in fenced_calls(text, len(text)) if call.start >= start), None)
    function = _FUNCTION.match(text, start)
    if function is None:
        return None
    stop = function.end()
    for _try in range(_MAX_ENDS):
        stop = text.find(")", stop) + 1
        if not stop:
            return None
        if (arguments := _python_arguments(text[function.end() : stop])) is not None:
            return TextCall(function[1], arguments, start, stop)
    return None


def decode_object(text: str, brace: int, end: int, *, truncated: bool) -> tuple[Any, int, list[str]]:
    """Parse the JSON object at ``brace``, which may extend beyond ``end``; repair invalid JSON unless it was cut off.

    Returns:
        The value, the position after it, and notes for the model.

    Raises:
        ValueError: if the object was cut off.
    """
    try:
        values, stop = json.JSONDecoder(strict=False).raw_decode(text, brace)
    except (ValueError, RecursionError) as error:
        written = text[brace:end].rstrip("`~*_ \n\t")
        if truncated or not written.endswith("}") or isinstance(error, RecursionError):
            raise ValueError(f"{error}; it has no end: was the reply cut off?") from None
        note = "The Action Input was not valid JSON and was repaired; check the result."
        return json_repair.loads(written, skip_json_loads=True), end, [note]
    return values, stop, []


def _call_of(values: Any, start: int, stop: int, text: str, notes: list[str]) -> TextCall | None:
    if isinstance(values, dict) and isinstance(values.get("function"), dict):  # as in OpenAI's tool calls
        values = values["function"]
    if not isinstance(values, dict):
        return None
    name = next((values[key] for key in _NAMES if isinstance(values.get(key), str)), None)
    given = next((values[key] for key in _ARGUMENTS if key in values), None)
    if isinstance(given, str):
        try:
            given = json.loads(given, strict=False)
        except (ValueError, RecursionError):
            return None
    if name is None or not isinstance(given, dict):
        return None
    after = _AFTER.match(text, stop)
    return TextCall(name, given, start, after.end() if after else stop, tuple(notes))


def _python_arguments(written: str) -> dict[str, Any] | list[Any] | None:
    """Return literal arguments, all by name or all by position, from text such as ``1, "x")``; None for other text."""
    try:
        with warnings.catch_warnings(action="ignore"):
            call = ast.parse(f"f({written}", mode="eval").body
            if not isinstance(call, ast.Call) or (call.args and call.keywords):
                return None
            if call.args:
                return [ast.literal_eval(value) for value in call.args]
            return {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
