"""A session: one agent at one task, with a workspace, a sandbox, a budget and an attempt log of its own."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.guest import port_forward
from re_bench.runs.attempts import AttemptLog
from re_bench.scoring.score import Score
from re_bench_environment.experiments import Experiments, has_meter
from re_bench_environment.leftovers import clear
from re_bench_environment.models import key_among, needs_key, wants_model
from re_bench_environment.prompt import prompt
from re_bench_environment.scoring import Scored
from re_bench_environment.shell import HOME, Shell
from re_bench_environment.verdict import Verdict, failure, final_verdict, interim_verdict
from re_bench_gateway import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from re_bench_environment.models import Access
    from re_bench_environment.offers import Offer
    from re_bench_environment.service import Service
    from re_bench_environment.shell import Output

__all__ = ["EndedError", "Session"]

_FORWARDER = Path(port_forward.__file__)
_INSIDE = "/run/re-bench"
_PORT = 18080
_FAILED_FINALS = 3


class EndedError(ReBenchError):
    """The session is over, or its time is up."""


class Session:
    """One agent's session. Its methods are called by one event loop; :meth:`close` may come at any time."""

    def __init__(self, service: Service, offer: Offer, given: Mapping[str, str]) -> None:
        """Begin a session at a task; nothing is made before :meth:`open`.

        Args:
            service: the server.
            offer: the task.
            given: the client's secrets; but for the model's key they are dropped.

        Raises:
            FullError: if the server has as many sessions as it may have.
        """
        stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
        self.name = f"{stamp}-{secrets.token_hex(4)}"
        self.offer = offer
        self.began = time.monotonic()
        self.doing, self.since = "beginning", self.began
        self.attempts = 0
        self.best: float | None = None
        """The reward of all attempts so far, by the manifest's aggregation."""
        self._service, self._key = service, key_among(given)
        self._place = service.state.sessions / self.name
        self._about: dict[str, object] = {"name": self.name, "task": offer.id, "profile": offer.profile_name}
        self._shell: Shell | None = None
        self._access: Access | None = None
        self._experiments: Experiments | None = None
        self._opening: asyncio.Future[None] | None = None
        self._scoring: asyncio.Task[Scored] | None = None
        self._failed_finals = 0
        self._closing: asyncio.Future[None] | None = None
        service.admit(self)

    async def open(self) -> None:
        """Lay out the workspace, and start what the sandbox will talk to.

        Raises:
            ReBenchError: if that fails.
        """
        # Threads go on when their caller is cancelled, and close() must see the end of what they make.
        self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        self._place.mkdir(mode=0o700)
        self._note(opened=_utc())
        await self._service.lay_out(self.offer, self.workspace)
        self._check_open()
        if wants_model(self.offer):
            budget = Budget(dollars=self._service.settings.model_dollars)
            self._access = await self._service.models.open(self.offer, self.name, self._key, budget)
        if has_meter(self.offer):
            socket = self._service.state.sockets / f"{self.name}.sock"
            self._experiments = Experiments(self.offer, socket, self._place / "experiments")
            await self._experiments.open()
        self.began = time.monotonic()
        self._now("idle")

    @property
    def workspace(self) -> Path:
        """The workspace, which the sandbox shows at its own place."""
        return self._place / "workspace"

    @property
    def log(self) -> Path:
        """The attempt log."""
        return self._place / "attempts.jsonl"

    def prompt(self) -> str:
        """Return what the agent is told at the beginning."""
        stand_in = self._access is not None and self._access.stand_in
        place = HOME if self._service.backend.name != "none" else str(self.workspace)
        return prompt(self.offer, self._service.settings, place, stand_in=stand_in)

    async def run(self, command: str, timeout_s: float | None) -> tuple[Output, float]:
        """Run a command in the session's shell; return what came of it, and how long it waited for the GPU.

        Raises:
            EndedError: if the session is over, or its time is up.
            ReBenchError: if there is no shell to run it.
        """
        settings = self._service.settings
        if await self._time_is_up():
            raise EndedError(
                f"the {settings.hours:g} hours of this session are over; call answer with get_final_score=true"
            )
        with self._busy("bash"):
            waited = await self._service.gpu_gate.command() if self.offer.profile.device == "cuda" else 0.0
            shell = await self._opened_shell()
            limit = min(timeout_s or settings.command_s, settings.longest_command_s, max(self._left_s(), 1.0))
            return await shell.run(command, limit), waited

    async def answer(self, *, final: bool) -> Verdict:
        """Score the workspace as it is; at the end, all attempts together.

        Raises:
            EndedError: if the session is over.
            ReBenchError: if the attempt could not be scored or written to the log; the episode goes on.
        """
        with self._busy("final answer" if final else "answer"):
            await self._time_is_up()
            try:
                scored = await self._scored()
            except ReBenchError as error:
                if self._closing is not None:
                    raise
                told = failure(f"The attempt was not scored, because something of ours failed: {error}")
                return await self._unscored(told, str(error)) if final else told
        return await self._ended(scored) if final else self._told(scored)

    async def close(self) -> None:
        """End all that the session runs, and remove its workspace; the log and its submissions stay."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._now("ending")
        try:
            if self._scoring is not None:
                self._scoring.cancel()
            running = [each for each in (self._opening, self._scoring) if each is not None]
            await asyncio.gather(*running, return_exceptions=True)
            await self._release()
            self._note(ended=_utc())
            await asyncio.to_thread(clear, self._place)
        finally:
            self._service.dismiss(self)

    async def _scored(self) -> Scored:
        self._check_open()
        extra, access = {"RE_BENCH_SESSION": self.name}, None
        if wants_model(self.offer) and self._key is not None and needs_key(self.offer):
            access = await self._service.models.open(self.offer, f"{self.name}-scoring", self._key, Budget())
            assert access.gateway.address is not None
            extra |= {"OPENAI_API_KEY": access.token, "OPENAI_BASE_URL": access.gateway.address}
        elif needs_key(self.offer):
            raise ReBenchError("this task needs the session's secret openai_api_key, and the session came without it")
        try:
            self._check_open()
            self._scoring = asyncio.create_task(
                self._service.scorings.score(self.offer, self.workspace, self.log, extra)
            )
            return await self._scoring
        except asyncio.CancelledError:
            raise EndedError("the session was ended while its attempt was scored; the attempt does not count") from None
        finally:
            self._scoring = None
            if access is not None:
                await access.close()

    def _told(self, scored: Scored) -> Verdict:
        self.attempts, self.best = scored.final.attempts, scored.final.reward
        return interim_verdict(
            self.offer.manifest,
            scored.score,
            scored.final.attempt,
            scored.waited_s,
            withhold=self._service.settings.withhold_rewards,
        )

    async def _ended(self, scored: Scored) -> Verdict:
        told = self._told(scored)
        if scored.score.status == "error" and not self._final_has_failed():
            return told
        return await self._finished(scored)

    async def _unscored(self, told: Verdict, why: str) -> Verdict:
        """Return what is said of a final answer that did not even become an attempt."""
        if not self._final_has_failed():
            return told
        offer = self.offer
        anchors = offer.manifest.anchors(offer.profile_name)
        ends = (anchors.starting, anchors.reference) if anchors else None
        last = await asyncio.to_thread(AttemptLog(self.log).final, offer.manifest.aggregation, ends)
        score = Score.error(offer.task.name, offer.profile_name, why)
        return await self._finished(Scored(score, replace(last, attempt=last.attempts + 1), 0.0))

    def _final_has_failed(self) -> bool:
        """Count a final answer that was not scored; tell whether it is one too many."""
        self._failed_finals += 1
        return self._failed_finals >= _FAILED_FINALS

    async def _finished(self, scored: Scored) -> Verdict:
        await self._release()
        self._now("finished")
        self._note(final=asdict(scored.final))
        return final_verdict(self.offer.manifest, scored.score, scored.final, scored.waited_s)

    async def _opened_shell(self) -> Shell:
        self._check_open()
        if self._shell is None:
            shell = await self._new_shell()
            if self._closing is not None:
                await shell.close()
            self._check_open()
            self._shell = shell
        return self._shell

    async def _new_shell(self) -> Shell:
        service, offer = self._service, self.offer
        variables = {"RE_BENCH_PROFILE": offer.profile_name}
        shown: dict[str, Path] = {}
        if self._experiments is not None:
            shown[f"{_INSIDE}/experiments.sock"] = self._experiments.socket
            variables["RE_BENCH_EXPERIMENTS"] = f"{_INSIDE}/experiments.sock"
        services = []
        if self._access is not None:
            shown[f"{_INSIDE}/gateway.sock"] = self._access.gateway.socket
            shown[f"{_INSIDE}/forward.py"] = _FORWARDER
            variables["OPENAI_API_KEY"] = self._access.token
            variables["OPENAI_BASE_URL"] = f"http://127.0.0.1:{_PORT}/v1"
            forwarder = [f"{_INSIDE}/forward.py", str(_PORT), f"{_INSIDE}/gateway.sock"]
            services.append([service.backend.python, "-I", "-S", *forwarder])
        return await Shell.open(
            service.backend,
            self.workspace,
            limits=service.settings.limits(offer.profile.limits),
            environment=variables,
            also=shown,
            hidden=await service.hidden(offer),
            gpu=await service.gpu(offer),
            services=services,
            scratch=self._place,
        )

    def _check_open(self) -> None:
        if self._closing is not None:
            raise EndedError("the session has ended")

    async def _release(self) -> None:
        """End the shell, the access to the model and the meter."""
        await self._end_shell()
        access, self._access = self._access, None
        experiments, self._experiments = self._experiments, None
        for each in (access, experiments):
            if each is not None:
                await each.close()

    async def _end_shell(self) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            await shell.close()

    def _left_s(self) -> float:
        return self._service.settings.hours * 3600 - (time.monotonic() - self.began)

    async def _time_is_up(self) -> bool:
        """Tell whether the session has had its hours; then what runs in the background ends."""
        if self._left_s() > 0:
            return False
        await self._end_shell()
        return True

    def _note(self, **more: object) -> None:
        """Write down what the session is and has become, for whoever reads its log."""
        self._about |= more
        with suppress(OSError):
            (self._place / "session.json").write_text(json.dumps(self._about) + "\n", encoding="utf-8")

    def _now(self, doing: str) -> None:
        self.doing, self.since = doing, time.monotonic()

    @contextmanager
    def _busy(self, doing: str) -> Iterator[None]:
        self._now(doing)
        try:
            yield
        finally:
            if self.doing == doing:
                self._now("idle")


def _utc() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
