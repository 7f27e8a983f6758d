"""Preparation of the served tasks, in the background, and workspaces laid out from what it has made.

For each task there is a template: the files that all its workspaces begin with. It is made by one run of the task's
``prepare.py``, anew at each start of the server, so that it is never of another version. Where workspaces differ, that
program stays, and writes into each of them what is its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING

from re_bench.data.files import remove_tree
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import StoppedError, raise_if_stop_requested, stop_on, stop_requested
from re_bench.task.prepare import PrepareWorker
from re_bench.task.workspace import lay_out, make_template
from re_bench_server.logs import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from re_bench_server.catalog import ServedTask

    StartServices = Callable[[ServedTask], Awaitable[None]]

_AT_A_TIME = 2
_THREADS = min(8, os.cpu_count() or 2)
_POLL_S = 0.5
_RETRY_AFTER_S = 10.0


class State(StrEnum):
    """How far the preparation of a task is."""

    PREPARING = "preparing"
    READY = "ready"
    FAILED = "failed"


class Preparation:
    """The preparation of one served task, and its workspaces. Methods are called by the event loop, or as they say."""

    def __init__(
        self, served: ServedTask, template: Path, slots: asyncio.Semaphore, start: StartServices, *, link: bool = False
    ) -> None:
        """Describe it; :meth:`start` starts it.

        Args:
            served: the task.
            template: a directory to be made.
            slots: held while it runs.
            start: starts what all sessions of a task share.
            link: whether workspaces share the manifest's ``shared_data``; see :func:`re_bench.task.workspace.lay_out`.
        """
        self.served = served
        self.state = State.PREPARING
        self.error: ReBenchError | None = None
        """Why the last run failed."""
        self._template, self._slots, self._start_services, self._link = template, slots, start, link
        self._worker = PrepareWorker(served.task, served.profile_name, self._log_progress)
        self._worker_lock = threading.Lock()
        self._made_something = False
        # Of its own, so that many sessions of one task do not hold up those of another.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"lay-out-{served.task.name}")
        self._running: asyncio.Task[None] | None = None
        self._ended = 0.0

    def start(self) -> None:
        """Prepare, in the background, unless that runs or is done, or failed a moment ago."""
        may_retry = self.state == State.FAILED and time.monotonic() - self._ended > _RETRY_AFTER_S
        if self._running is None or (self._running.done() and may_retry):
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def wait(self, abandoned: threading.Event | None = None) -> None:
        """Wait until it is ready.

        Args:
            abandoned: set when nobody waits any more.

        Raises:
            ReBenchError: if it failed, or the server is ending.
            StoppedError: if it was abandoned.
        """
        while self.state == State.PREPARING and self._running is not None:
            if stop_requested():
                raise ReBenchError("the server is ending")
            if abandoned is not None and abandoned.is_set():
                raise StoppedError
            await asyncio.wait({self._running}, timeout=_POLL_S)
        if self.error is not None:
            raise self.error

    async def lay_out(self, workspace: Path, abandoned: threading.Event) -> None:
        """Lay out a workspace in a directory that does not exist yet, as soon as the task is ready.

        Args:
            workspace: the directory.
            abandoned: set when nobody needs it any more: then it is left, and what is there of it removed.

        Raises:
            ReBenchError: if that fails.
            StoppedError: if the server is ending, or it was abandoned.
        """

        def lay_out_unless_abandoned() -> None:
            with stop_on(abandoned):
                raise_if_stop_requested()
                lay_out(
                    self.served.task,
                    workspace,
                    profile=self.served.profile_name,
                    template=self._template,
                    randomize=self._randomize if self._worker.randomized else None,
                    link=self._link,
                )

        await self.wait(abandoned)
        await self._in_thread(lay_out_unless_abandoned)

    async def stop(self) -> None:
        """Wait for the end of what runs in threads, which has been asked to stop, and end the program."""
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._worker.close)

    async def _run(self) -> None:
        async with self._slots:
            began = time.monotonic()
            try:
                await self._in_thread(self._make)
                await self._start_services(self.served)
            except StoppedError:
                self.state, self.error = State.FAILED, ReBenchError("the server is ending")
            except Exception as error:  # noqa: BLE001 - whatever it is, sessions must not wait for it
                reason = f"{type(error).__name__}: {error}"
                self.error = error if isinstance(error, ReBenchError) else ReBenchError(reason)
                self.state = State.FAILED
                log.error("task_not_prepared", task=self.served.id, reason=str(self.error))
            else:
                self.state, self.error = State.READY, None
                log.info("task_prepared", task=self.served.id, seconds=round(time.monotonic() - began, 1))
            self._ended = time.monotonic()

    def _make(self) -> None:
        remove_tree(self._template)
        self._template.mkdir()
        task = self.served.task
        try:
            self._worker.start()
            if self._made_something and self._worker.randomized:  # it may hold a GPU and much memory
                self._worker.close()
                self._worker.start()
            make_template(task, self._template, self._worker.create_workspace)
        except BaseException:
            self._worker.close()
            raise
        if not self._worker.randomized:
            self._worker.close()

    def _randomize(self, workspace: Path) -> None:
        while not self._worker_lock.acquire(timeout=_POLL_S):
            raise_if_stop_requested()
        try:
            raise_if_stop_requested()
            with stop_on(None):  # the program is the others' too, and would be ended with the request
                self._worker.randomize_workspace(workspace)
        finally:
            self._worker_lock.release()

    def _log_progress(self, line: str) -> None:
        self._made_something = True
        log.info("task_preparing", task=self.served.id, line=line)

    async def _in_thread(self, function: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, function)


class Preparations:
    """The preparations of all served tasks."""

    def __init__(
        self, tasks: Iterable[ServedTask], directory: Path, start: StartServices, *, link: bool = False
    ) -> None:
        """Start them, two at a time.

        Args:
            tasks: the served tasks.
            directory: where templates are made; what an earlier server left there is removed.
            start: starts what all sessions of a task share, such as the gateway to its model.
            link: whether workspaces share what the manifests call ``shared_data``.

        Raises:
            UsageError: if the directory cannot be made.
        """
        self._directory = directory
        self._loop = asyncio.get_running_loop()
        try:
            remove_tree(directory)
            directory.mkdir(mode=0o700)
        except OSError as error:
            raise UsageError(f"{directory}: cannot be used for the tasks' files ({error.strerror})") from None
        slots = asyncio.Semaphore(_AT_A_TIME)
        self.by_id = {
            served.id: Preparation(served, directory / served.task.name, slots, start, link=link) for served in tasks
        }
        for preparation in self.by_id.values():
            preparation.start()

    @property
    def ready(self) -> bool:
        """Whether none is being prepared, and there is a task that is ready."""
        states = {preparation.state for preparation in self.by_id.values()}
        return State.PREPARING not in states and State.READY in states

    def check(self, served: ServedTask) -> None:
        """Do nothing, or tell why no session of a task can be had, and try again to prepare it; from any thread.

        Raises:
            ReBenchError: if its preparation failed.
        """
        preparation = self.by_id[served.id]
        if preparation.state == State.FAILED:
            self._loop.call_soon_threadsafe(preparation.start)
            raise ReBenchError(f"{served.id} is not prepared: {preparation.error}; this is tried again now and then")

    async def wait_for_all(self) -> None:
        """Wait until all are ready.

        Raises:
            ReBenchError: if some failed; a :class:`UsageError` if they cannot be prepared here.
        """
        waiting = [preparation.wait() for preparation in self.by_id.values()]
        errors = [error for error in await asyncio.gather(*waiting, return_exceptions=True) if error is not None]
        if errors:
            kind = UsageError if all(isinstance(error, UsageError) for error in errors) else ReBenchError
            raise kind(f"{len(errors)} of {len(waiting)} tasks cannot be prepared: {'; '.join(map(str, errors))}")

    async def stop(self) -> None:
        """End what runs; threads have been asked to stop. No workspace can be laid out any more."""
        await asyncio.gather(*(preparation.stop() for preparation in self.by_id.values()))
        await asyncio.to_thread(remove_tree, self._directory)
