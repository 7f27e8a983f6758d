"""Runs the submission in the sandbox: imports its module and has problems solved.

``load`` imports. ``begin`` calls ``generate_solution`` for every problem of a batch, ``work`` lets all of them go on
for some time, as often as the scorer's clock allows, and ``answers`` ends it. Sources go back in buffers of a fixed
size, and beside them how long each is, or why there is none.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import openai

from re_bench.guest.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

FUNCTION = "generate_solution"
MAX_TEXT = 500

_loaded: dict[str, Callable[..., Coroutine[Any, Any, object]]] = {}
_tasks: list[asyncio.Task[Any]] = []
# Not asyncio.run, which waits for tasks that do not let themselves be cancelled.
_loop = asyncio.new_event_loop()


def load(args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> None:
    """Import the ``module`` in ``directory``, and find its function.

    Raises:
        RefusedError: if the module is not what the instructions ask for.
    """
    os.chdir(args["directory"])
    sys.path.insert(0, args["directory"])  # after our own imports, so that no name of ours is shadowed
    function = getattr(importlib.import_module(args["module"]), FUNCTION, None)
    if function is None:
        raise RefusedError(f"{args['module']}.py defines no {FUNCTION}")
    if not inspect.iscoroutinefunction(function):
        raise RefusedError(f"{FUNCTION} must be defined by `async def`")
    _loaded[FUNCTION] = function


def begin(args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> None:
    """Make a task for each of the ``problems``.

    ``args`` also has the gateway's ``socket`` and ``token``, and how many calls the semaphore lets through,
    ``streams``.
    """
    asyncio.set_event_loop(_loop)
    _loop.run_until_complete(_begin(args))


def work(args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> bool:
    """Go on with all tasks for ``seconds`` at most, and tell whether they are done."""
    _done, pending = _loop.run_until_complete(asyncio.wait(_tasks, timeout=args["seconds"]))
    return not pending


def answers(_args: dict[str, Any], _inputs: list[Any], outputs: list[Any]) -> list[dict[str, Any]]:
    """Return for each problem ``bytes``, how much of its output is source text, or ``failed``."""
    return [_answer(task, room) for task, room in zip(_tasks, outputs, strict=True)]


async def _begin(args: dict[str, Any]) -> None:
    client = openai.AsyncOpenAI(
        api_key=args["token"],
        base_url="http://gateway/v1",
        http_client=openai.DefaultAsyncHttpxClient(transport=httpx2.AsyncHTTPTransport(uds=args["socket"])),
    )
    semaphore = asyncio.Semaphore(args["streams"])
    _tasks.extend(asyncio.create_task(_result(client, semaphore, problem)) for problem in args["problems"])


async def _result(client: openai.AsyncOpenAI, semaphore: asyncio.Semaphore, problem: dict[str, Any]) -> Any:
    try:
        return await _loaded[FUNCTION](client, semaphore, problem)
    except BaseException as error:  # noqa: BLE001 - SystemExit too is a failure of this problem alone
        return error


def _answer(task: asyncio.Task[Any], room: memoryview) -> dict[str, Any]:
    """Put a source text into its output, and say how long it is, or why there is none."""
    if not task.done():
        return {"failed": "out of time"}
    result = task.result()
    if isinstance(result, BaseException):
        return {"failed": "exception", "text": f"{type(result).__name__}: {result}"[:MAX_TEXT]}
    if not isinstance(result, str):
        return {"failed": "not a string", "text": type(result).__name__[:MAX_TEXT]}
    return _put(result, room)


def _put(source: str, room: memoryview) -> dict[str, Any]:
    try:
        data = source[: len(room) + 1].encode()
    except UnicodeEncodeError:
        return {"failed": "not Unicode text"}
    if len(data) > len(room):
        return {"failed": "too long", "text": f"{len(source)} characters"}
    room[: len(data)] = data
    return {"bytes": len(data)}
