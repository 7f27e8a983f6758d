"""The attempts of one session: each is scored, is on the disk before it is told, and the final one ends the episode."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.runs.attempts import AttemptLog
from re_bench_gateway import Budget
from re_bench_server import restore
from re_bench_server.logs import log
from re_bench_server.responses import (
    ToolResponse,
    attempt_response,
    attempts_used_response,
    error_response,
    final_response,
    unscored_final_response,
)
from re_bench_server.scoring import ScoredAttempt, final_so_far, unscored_attempt
from re_bench_server.services.model import SCORING_CALLS
from re_bench_server.session_record import AnswerCall, utc

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from re_bench.runs.elapsed import Elapsed
    from re_bench_server.app_state import AppState
    from re_bench_server.catalog import ServedTask
    from re_bench_server.session_record import SessionClock, SessionRecord

_MAX_FAILED_FINALS = 3


class SessionScoring:
    """Scores the attempts of one session, one at a time."""

    def __init__(
        self, app: AppState, served: ServedTask, record: SessionRecord, directory: Path, clock: SessionClock
    ) -> None:
        """Prepare.

        Args:
            app: the shared part of the server.
            served: the task.
            record: the session's; each attempt changes it, and it is saved.
            directory: the session's.
            clock: the session's.
        """
        self.best_reward: float | None = None
        """The highest reward of an attempt; nothing of what is held back for the final score is in it."""
        self._app, self._served, self._record, self._directory = app, served, record, directory
        self._clock = clock
        self._workspace, self._log = directory / "workspace", directory / "attempts.jsonl"
        self._running: asyncio.Task[ScoredAttempt] | None = None
        self._stopped = False
        self._failed_finals = 0

    async def answer(self, key: str | None, *, final: bool, task_id: str | None) -> ToolResponse:
        """Score the workspace as it is; at the end, all attempts together. Where they are used up, nothing is scored.

        Args:
            key: the session's key for the task's model.
            final: whether the episode ends with it.
            task_id: the SDK's id of the call.

        Raises:
            ReBenchError: if it was stopped, or the record cannot be written.
        """
        if self._record.scored >= self._app.settings.max_attempts:
            return await self._answer_without_scoring(final=final, task_id=task_id)
        handed_in = self._clock.elapsed()
        call = self._record.answer = AnswerCall(utc(), final, task_id, self._record.attempts, **asdict(handed_in))
        await self._save()
        try:
            attempt = await self._score(key, handed_in)
        except ReBenchError as error:
            if self._stopped:
                raise
            await asyncio.to_thread(self._log_failure, str(error))
            call.state = "done"
            if not (final and self._is_last_failed_final()):
                await self._save_outcome()
                return error_response(f"The attempt was not scored, because something of ours failed: {error}")
            attempt = await asyncio.to_thread(unscored_attempt, self._served, self._log, str(error))
            return await self._finish(attempt)
        await asyncio.to_thread(restore.count_attempts, self._record, self._log)
        call.state = "done"
        self._best_of([attempt.score.reward])
        if final and (attempt.score.status != "error" or self._is_last_failed_final()):
            return await self._finish(attempt)
        await self._save_outcome()
        withhold = self._app.settings.withhold_rewards
        return attempt_response(self._served.manifest, attempt, withhold_reward=withhold)

    async def stop(self) -> None:
        """Stop what runs, and score nothing more."""
        self._stopped = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def settle(self, reason: str = "the server ended while this attempt was scored") -> None:
        """Find out what became of a call that still ran when its server ended, or stopped it.

        Args:
            reason: what the log says of an attempt that nothing became of.

        Raises:
            OSError: if the log cannot be read.
            ReBenchError: if log or record cannot be written.
        """
        restore.settle_answer(self._served, self._record, self._log, reason)
        self._best_of(attempt.reward for attempt in AttemptLog(self._log).read().attempts)
        self._record.save(self._directory)

    def outcome_of(self, task_id: str) -> ToolResponse:
        """Return the response to a call that an earlier server had; see :func:`restore.lost_response`.

        Raises:
            OSError: if the log cannot be read.
        """
        withhold = self._app.settings.withhold_rewards
        return restore.lost_response(self._served, self._record, self._log, task_id, withhold_reward=withhold)

    def final_so_far(self) -> dict[str, object] | None:
        """Return the final score of an episode that ends without a final answer; None without attempts.

        Raises:
            OSError: if the log cannot be read.
        """
        final = final_so_far(self._served, self._log)
        return asdict(final) if final.attempts else None

    async def _score(self, key: str | None, handed_in: Elapsed) -> ScoredAttempt:
        # What a scorer that is killed leaves there, the next start removes.
        variables = {"RE_BENCH_SESSION": self._record.name, "TMPDIR": str(self._app.state_directory.sockets)}
        variables |= self._served.instance_environment(self._record.instance)
        access = None
        if self._served.needs_key:
            if key is None:
                lost = "this server does not have it any more: send it again with POST /create"
                reason = lost if self._record.key else "the session came without it"
                raise ReBenchError(f"this task needs the session's secret openai_api_key, and {reason}")
            name = f"{self._record.name}-scoring"
            access = await self._app.models.open(self._served, name, key, Budget(), calls=SCORING_CALLS)
            assert access.gateway.address is not None
            variables |= {"OPENAI_API_KEY": access.token, "OPENAI_BASE_URL": access.gateway.address}
        try:
            if self._stopped:
                raise ReBenchError("it was stopped")
            self._running = asyncio.create_task(
                self._app.scorer.score(
                    self._served, self._workspace, self._log, variables, clock=self._clock, handed_in=handed_in
                )
            )
            return await self._running
        except asyncio.CancelledError:
            raise ReBenchError("it was stopped") from None
        finally:
            self._running = None
            if access is not None:
                await access.close()
                if access.dollars is not None:
                    self._record.scoring_model_dollars = (self._record.scoring_model_dollars or 0.0) + access.dollars

    async def _answer_without_scoring(self, *, final: bool, task_id: str | None) -> ToolResponse:
        if not final:
            return attempts_used_response(self._app.settings.max_attempts)
        self._record.answer = AnswerCall(utc(), final, task_id, self._record.attempts, state="done")
        score = await asyncio.to_thread(final_so_far, self._served, self._log)
        self._clock.checkpoint()
        self._record.state, self._record.final = "finished", asdict(score)
        await self._save()
        return unscored_final_response(self._served.manifest, score)

    def _log_failure(self, reason: str) -> None:
        """Have an attempt in the log whose scorer ended without telling of any."""
        try:
            restore.log_lost_attempt(self._served, self._record, self._log, reason)
            restore.count_attempts(self._record, self._log)
        except (OSError, ReBenchError) as error:
            log.error("attempt_not_logged", session=self._record.name, reason=str(error))

    def _best_of(self, rewards: Iterable[float | None]) -> None:
        known = [reward for reward in (self.best_reward, *rewards) if reward is not None]
        self.best_reward = max(known, default=None)

    async def _save_outcome(self) -> None:
        """Save the record of a call whose outcome is in the log: there :meth:`settle` finds it if this fails."""
        try:
            await self._save()
        except ReBenchError as error:
            log.error("record_not_saved", session=self._record.name, reason=str(error))

    def _is_last_failed_final(self) -> bool:
        """Count a final answer that was not scored; tell whether the episode ends without it."""
        self._failed_finals += 1
        return self._failed_finals >= _MAX_FAILED_FINALS

    async def _finish(self, attempt: ScoredAttempt) -> ToolResponse:
        self._clock.checkpoint()
        self._record.state, self._record.final = "finished", asdict(attempt.final)
        await self._save_outcome()
        return final_response(self._served.manifest, attempt)

    async def _save(self) -> None:
        await asyncio.to_thread(self._record.save, self._directory)
