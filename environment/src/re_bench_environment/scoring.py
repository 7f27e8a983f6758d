"""Scoring an attempt of a session: the program :mod:`re_bench_environment.scorer`, and waiting for its turn."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.runs.attempts import FinalScore
from re_bench.scoring.score import Score
from re_bench_environment.children import end, environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench_environment.offers import Offer
    from re_bench_environment.turns import GpuGate, Turns

__all__ = ["Scored", "Scorings"]

_LONGEST_ANSWER = 8 << 20
_BESIDE_S = 300.0  # for copying the submission and for the log, beside the profile's own limit


@dataclass(frozen=True)
class Scored:
    """An attempt, which is on the disk."""

    score: Score
    final: FinalScore
    """The score of all attempts so far, with this attempt's number."""
    waited_s: float


class Scorings:
    """What scores the attempts of all sessions, a few at a time."""

    def __init__(self, turns: Turns, gpu: GpuGate, sandbox: str | None, keep_mib: int) -> None:
        self._turns, self._gpu, self._sandbox, self._keep_mib = turns, gpu, sandbox, keep_mib

    async def score(self, offer: Offer, workspace: Path, log: Path, extra: Mapping[str, str]) -> Scored:
        """Score the workspace as it is once it is this attempt's turn.

        Args:
            offer: the task.
            workspace: the submission; it is copied first.
            log: the session's attempt log.
            extra: environment variables for the scorer.

        Raises:
            ReBenchError: if the attempt could not be scored, or not be written to the log.
        """
        async with AsyncExitStack() as stack:
            waited = await stack.enter_async_context(self._turns.turn())
            if offer.profile.device == "cuda":
                waited += await stack.enter_async_context(self._gpu.scoring())
            written = await self._run(offer, workspace, log, extra)
        try:
            answer = json.loads(written)
            return Scored(Score.from_dict(answer["score"]), FinalScore(**answer["final"]), waited)
        except (ValueError, TypeError, KeyError):
            raise ReBenchError("the scorer ended without a score; the operator's log says why") from None

    async def _run(self, offer: Offer, workspace: Path, log: Path, extra: Mapping[str, str]) -> bytes:
        program = ["-P", "-m", "re_bench_environment.scorer", "--task", str(offer.task.directory)]
        program += ["--submission", str(workspace), "--log", str(log), "--profile", offer.profile_name]
        program += ["--keep-mib", str(self._keep_mib)]
        program += ["--sandbox", self._sandbox] if self._sandbox else []
        with log.with_name("scorer.log").open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *program,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env=environment(**extra),
                start_new_session=True,
                limit=_LONGEST_ANSWER,
            )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(offer.profile.time_limit_s + _BESIDE_S):
                written = await process.stdout.read()
                await process.wait()
        except TimeoutError:
            raise ReBenchError("the scorer did not end in time") from None
        finally:
            await asyncio.shield(end(process))
        return written
