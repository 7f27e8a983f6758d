"""A session: one agent at one task, with a workspace, a sandbox, a budget and an attempt log of its own."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.guest import port_forward
from re_bench_environment.network.service import NetworkAccess
from re_bench_environment.prompt import prompt
from re_bench_environment.responses import ToolResponse, attempt_response, error_response, final_response
from re_bench_environment.scoring import ScoredAttempt, unscored_attempt
from re_bench_environment.services.meter import MeterProxy
from re_bench_environment.services.model import session_key
from re_bench_environment.shell.shell import WORKSPACE, Shell
from re_bench_environment.state_dir import clear
from re_bench_gateway import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from re_bench_environment.app_state import AppState
    from re_bench_environment.catalog import ServedTask
    from re_bench_environment.services.model import ModelAccess
    from re_bench_environment.shell.protocol import Output

_GUEST_DIRECTORY = "/run/re-bench"
_PORT = 18080
_MAX_FAILED_FINALS = 3


class SessionClosedError(ReBenchError):
    """The session has ended, or its time is up."""


class Session:
    """One agent's session. Its methods are called by one event loop; :meth:`close` may be called at any time."""

    def __init__(
        self, app: AppState, served: ServedTask, secret_values: Mapping[str, str], on_closed: Callable[[], None]
    ) -> None:
        """Begin a session at a task; nothing is created on the disk before :meth:`open`.

        Args:
            app: the shared part of the server.
            served: the task.
            secret_values: the client's secrets by name; all but the model's key are dropped.
            on_closed: called once when the session has ended.
        """
        stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
        self.name = f"{stamp}-{secrets.token_hex(4)}"
        self.served = served
        self.started = time.monotonic()
        self.activity, self.activity_since = "beginning", self.started
        self.attempts = 0
        self.reward: float | None = None
        """The reward of all attempts so far, by the manifest's aggregation."""
        self._app, self._key, self._on_closed = app, session_key(secret_values), on_closed
        self._directory = app.state_directory.sessions / self.name
        self._workspace, self._log = self._directory / "workspace", self._directory / "attempts.jsonl"
        self._record: dict[str, object] = {"name": self.name, "task": served.id, "profile": served.profile_name}
        self._record["network"] = app.settings.network.record()
        self._shell: Shell | None = None
        self._model_access: ModelAccess | None = None
        self._meter: MeterProxy | None = None
        self._network = NetworkAccess()
        self._opening: asyncio.Future[None] | None = None
        self._scoring: asyncio.Task[ScoredAttempt] | None = None
        self._failed_finals = 0
        self._closing: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Lay out the workspace, and start the services that the sandbox connects to.

        Raises:
            ReBenchError: if that fails.
        """
        # Threads go on when their caller is cancelled, and close() must see the end of what they make.
        self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        self._directory.mkdir(mode=0o700)
        self._update_record(opened=_utc())
        await self._app.lay_out(self.served, self._workspace)
        self._check_open()
        self._network = await self._app.network.open(self.name, self._directory)
        manifest = self.served.manifest
        if manifest.model is not None:
            budget = Budget(dollars=self._app.settings.model_dollars)
            self._model_access = await self._app.models.open(self.served, self.name, self._key, budget)
        if self.served.meter is not None:
            socket = self._app.state_directory.sockets / f"{self.name}.sock"
            self._meter = MeterProxy(self.served, self.served.meter, socket, self._directory / "experiments")
            await self._meter.open()
        self.started = time.monotonic()
        self._set_activity("idle")

    def prompt(self) -> str:
        """Return what the agent is told at the beginning."""
        stand_in = self._model_access is not None and self._model_access.stand_in
        workspace = WORKSPACE if self._app.backend.name != "none" else str(self._workspace)
        return prompt(self.served, self._app.settings, workspace, stand_in=stand_in)

    async def run(self, command: str, timeout_s: float | None) -> tuple[Output, float]:
        """Run a command in the session's shell; return its output, and how long it waited for the GPU.

        Raises:
            SessionClosedError: if the session has ended, or its time is up.
            ReBenchError: if there is no shell to run it.
        """
        settings = self._app.settings
        if await self._time_is_up():
            raise SessionClosedError(
                f"the {settings.hours:g} hours of this session are over; call answer with get_final_score=true"
            )
        with self._busy_with("bash"):
            waited_s = await self._app.gpu_gate.wait_until_idle() if self.served.profile.device == "cuda" else 0.0
            shell = await self._ensure_shell()
            limit = min(timeout_s or settings.command_s, settings.longest_command_s, max(self._remaining_s(), 1.0))
            return await shell.run(command, limit), waited_s

    async def answer(self, *, final: bool) -> ToolResponse:
        """Score the workspace as it is; at the end, all attempts together.

        Raises:
            SessionClosedError: if the session has ended.
            ReBenchError: if the attempt could not be scored or written to the log; the episode goes on.
        """
        with self._busy_with("final answer" if final else "answer"):
            await self._time_is_up()
            try:
                attempt = await self._score()
            except ReBenchError as error:
                if self._closing is not None:
                    raise
                if final and self._is_last_failed_final():
                    return await self._finish(
                        await asyncio.to_thread(unscored_attempt, self.served, self._log, str(error))
                    )
                return error_response(f"The attempt was not scored, because something of ours failed: {error}")
        self.attempts, self.reward = attempt.final.attempts, attempt.final.reward
        if final and (attempt.score.status != "error" or self._is_last_failed_final()):
            return await self._finish(attempt)
        withhold = self._app.settings.withhold_rewards
        return attempt_response(self.served.manifest, attempt, withhold_reward=withhold)

    async def close(self) -> None:
        """End everything that the session runs, and remove its workspace; the log and the scored copies stay."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._set_activity("ending")
        try:
            if self._scoring is not None:
                self._scoring.cancel()
            running = [task for task in (self._opening, self._scoring) if task is not None]
            await asyncio.gather(*running, return_exceptions=True)
            await self._release()
            self._update_record(ended=_utc())
            await asyncio.to_thread(clear, self._directory)
        finally:
            self._on_closed()

    async def _score(self) -> ScoredAttempt:
        self._check_open()
        variables, access = {"RE_BENCH_SESSION": self.name}, None
        if self.served.needs_key:
            if self._key is None:
                raise ReBenchError(
                    "this task needs the session's secret openai_api_key, and the session came without it"
                )
            access = await self._app.models.open(self.served, f"{self.name}-scoring", self._key, Budget())
            assert access.gateway.address is not None
            variables |= {"OPENAI_API_KEY": access.token, "OPENAI_BASE_URL": access.gateway.address}
        try:
            self._check_open()
            self._scoring = asyncio.create_task(
                self._app.scorer.score(self.served, self._workspace, self._log, variables)
            )
            return await self._scoring
        except asyncio.CancelledError:
            raise SessionClosedError(
                "the session was ended while its attempt was scored; the attempt does not count"
            ) from None
        finally:
            self._scoring = None
            if access is not None:
                await access.close()

    def _is_last_failed_final(self) -> bool:
        """Count a final answer that was not scored; tell whether the episode ends without it."""
        self._failed_finals += 1
        return self._failed_finals >= _MAX_FAILED_FINALS

    async def _finish(self, attempt: ScoredAttempt) -> ToolResponse:
        await self._release()
        self._set_activity("finished")
        self._update_record(final=asdict(attempt.final))
        return final_response(self.served.manifest, attempt)

    async def _ensure_shell(self) -> Shell:
        self._check_open()
        if self._shell is None:
            shell = await self._open_shell()
            if self._closing is not None:
                await shell.close()
            self._check_open()
            self._shell = shell
        return self._shell

    async def _open_shell(self) -> Shell:
        app, served = self._app, self.served
        variables = {"RE_BENCH_PROFILE": served.profile_name, **self._network.variables}
        shown = dict(self._network.shown)
        services = list(self._network.services)
        if self._meter is not None:
            shown[f"{_GUEST_DIRECTORY}/experiments.sock"] = self._meter.socket
            variables["RE_BENCH_EXPERIMENTS"] = f"{_GUEST_DIRECTORY}/experiments.sock"
        if self._model_access is not None:
            forwarder, socket = f"{_GUEST_DIRECTORY}/port_forward.py", f"{_GUEST_DIRECTORY}/gateway.sock"
            shown |= {socket: self._model_access.gateway.socket, forwarder: Path(port_forward.__file__)}
            variables["OPENAI_API_KEY"] = self._model_access.token
            variables["OPENAI_BASE_URL"] = f"http://127.0.0.1:{_PORT}/v1"
            services.append([app.backend.python, "-I", "-S", forwarder, str(_PORT), socket])
        return await Shell.open(
            app.backend,
            self._workspace,
            self._directory / "home",
            limits=app.settings.session_limits(served.limits),
            environment=variables,
            also=shown,
            hidden=await app.hidden(served),
            gpu=await app.gpu(served),
            services=services,
            host_network=app.settings.network.mode == "open",
            scratch=self._directory,
        )

    def _check_open(self) -> None:
        if self._closing is not None:
            raise SessionClosedError("the session has ended")

    async def _release(self) -> None:
        """Close the shell, the access to the model and the meter."""
        await self._close_shell()
        await self._app.network.close_session(self.name)
        access, self._model_access = self._model_access, None
        meter, self._meter = self._meter, None
        for service in (access, meter):
            if service is not None:
                await service.close()

    async def _close_shell(self) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            await shell.close()

    def _remaining_s(self) -> float:
        return self._app.settings.hours * 3600 - (time.monotonic() - self.started)

    async def _time_is_up(self) -> bool:
        """Tell whether the session's hours are over; then what runs in the background ends."""
        if self._remaining_s() > 0:
            return False
        await self._close_shell()
        return True

    def _update_record(self, **fields: object) -> None:
        """Write ``session.json``, which describes the session to readers of its log."""
        self._record |= fields
        with suppress(OSError):
            (self._directory / "session.json").write_text(json.dumps(self._record) + "\n", encoding="utf-8")

    def _set_activity(self, activity: str) -> None:
        self.activity, self.activity_since = activity, time.monotonic()

    @contextmanager
    def _busy_with(self, activity: str) -> Iterator[None]:
        self._set_activity(activity)
        try:
            yield
        finally:
            if self.activity == activity:
                self._set_activity("idle")


def _utc() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
