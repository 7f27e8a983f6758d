"""Structured logs: one JSON object a line on stderr, without session ids, which are what gives access, and secrets."""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
from typing import TYPE_CHECKING, Any

import structlog

from re_bench_gateway.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["log", "set_up"]

_SDK = ("openreward.environments.server", "openreward.environments.environment", "openreward.environments.session")
_LEFT_OUT = ("method", "userId", "organisationId", "logger_name")
_REPEATING = ("request_error", "tool_input_validation_error")


def _unrepeated(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Leave out what a client sent that was not as it should be: it may be a key in a wrong place, or megabytes."""
    if event.get("event") in _REPEATING and "ValidationError" in event.get("error_type", "ValidationError"):
        event.pop("error", None)
        event.pop("exc_info", None)
    return event


def _label(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace the id of a session, with which anybody could call its tools, by eight digits of its hash."""
    sid = event.pop("session_id", None)
    if sid:
        event["client_session"] = hashlib.sha256(str(sid).encode()).hexdigest()[:8]
    for name in _LEFT_OUT:
        event.pop(name, None)
    return event


def _plain(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take out what looks like a key, wherever it stands."""
    return {
        name: redacted(value, _known, similar=True) if isinstance(value, str) else value
        for name, value in event.items()
    }


_known: set[str] = set()
_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso"),
    _unrepeated,
    structlog.processors.format_exc_info,
    _label,
    _plain,
    structlog.processors.JSONRenderer(default=str),
]

log: Any = structlog.wrap_logger(
    structlog.PrintLogger(sys.stderr),
    processors=_PROCESSORS,
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
)
"""The server's logger."""


class _Forwarding(logging.Handler):
    """Gives what libraries log to our logger."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        log.log(record.levelno, "library", logger=record.name, message=text)


def set_up(*secrets: str) -> None:
    """Make the SDK and all libraries log like us, and keep ``secrets`` out of it."""
    _known.update(secrets)
    for name in _SDK:
        vars(importlib.import_module(name))["logger"] = log  # by itself it writes to stdout, in a form of its own
    root = logging.getLogger()
    root.handlers[:] = [_Forwarding()]
    root.setLevel(logging.WARNING)
