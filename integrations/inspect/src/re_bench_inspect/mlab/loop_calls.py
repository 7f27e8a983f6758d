"""Work in a thread that calls functions of the event loop: they run in the task that waits for the thread.

So they have the task's context (Inspect's transcript, spans, limits, sandbox), and what cancels the task ends the
thread.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from anyio import from_thread, to_thread

from mlab_agent.agent import RunStopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


@dataclass
class _Call(Generic[T]):
    function: Callable[[], Awaitable[T]]
    expected: tuple[type[Exception], ...]
    result: Future[T] = field(default_factory=Future)


class LoopCalls:
    """The calls of one thread. ``work`` of :meth:`run` is what the thread does; the other methods are for it."""

    def __init__(self, reason: Callable[[BaseException], RunStopped]) -> None:
        """Begin without any.

        Args:
            reason: returns what the thread gets after an exception or a cancellation has ended the task.
        """
        self._reason = reason
        self._send, self._receive = anyio.create_memory_object_stream[_Call[Any]](max_buffer_size=float("inf"))
        self._stopped: RunStopped | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread, and serve its calls until it ends.

        Raises:
            Exception: what a call has raised, unless the call expected it; the thread has ended then, as it has when
                this is cancelled.
        """
        results: list[T] = []
        errors: list[Exception] = []

        async def run_thread() -> None:
            limiter = anyio.CapacityLimiter(1)  # not that of all threads, which long work would use up
            with self._send, contextlib.suppress(RunStopped):
                try:
                    results.append(await to_thread.run_sync(work, limiter=limiter))
                except Exception as error:  # noqa: BLE001 - a task group would wrap it
                    errors.append(error)

        with self._receive:
            async with anyio.create_task_group() as group:
                group.start_soon(run_thread)
                if (error := await self._serve()) is not None:
                    errors.insert(0, error)
        if errors:
            raise errors[0]
        return results[0]

    def call(self, function: Callable[[], Awaitable[T]], *expected: type[Exception]) -> T:
        """Call a function in the task, and return its result.

        Args:
            function: without arguments.
            expected: exceptions that are raised here; every other one ends the task, and the thread.

        Raises:
            RunStopped: if the task is over.
        """
        call = _Call(function, expected)
        from_thread.run_sync(self._submit, call)
        return call.result.result()

    def post(self, function: Callable[[], Awaitable[object]]) -> None:
        """Have a function called in the task, in its turn, unless that is over; the thread does not wait for it."""
        from_thread.run_sync(self._submit, _Call(function, ()))

    def _submit(self, call: _Call[Any]) -> None:
        if self._stopped is None:
            self._send.send_nowait(call)
        else:
            call.result.set_exception(self._stopped)

    async def _serve(self) -> Exception | None:
        """Carry calls out, one after the other; return the exception that ended this before the thread did."""
        try:
            async for call in self._receive:
                try:
                    call.result.set_result(await call.function())
                except call.expected as error:
                    call.result.set_exception(error)
                except BaseException as error:
                    self._stop(error, call)
                    raise
        except Exception as error:  # noqa: BLE001 - a task group would wrap it
            return error
        except BaseException as error:
            if self._stopped is None:  # cancelled between two calls
                self._stop(error)
            raise
        return None

    def _stop(self, error: BaseException, current: _Call[Any] | None = None) -> None:
        self._stopped = self._reason(error)
        if current is not None:
            current.result.set_exception(self._stopped)
        while self._receive.statistics().current_buffer_used:
            self._receive.receive_nowait().result.set_exception(self._stopped)
