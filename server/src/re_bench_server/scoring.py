"""Scoring an attempt of a session, in a subprocess: ``python -m re_bench_server.scoring``.

The subprocess keeps a copy of the submission, for which the oldest copies make room, runs the task's scorer on the
copy, appends the attempt to the session's log, and prints ``{"score": ..., "final": ...}``: whatever the server reads
there is on the disk already. It gives up as soon as its stdin is closed, that is, when the server ends for whatever
reason.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path  # noqa: TC003 - cyclopts reads it
from typing import TYPE_CHECKING

from cyclopts import App

from re_bench.errors import ReBenchError, UsageError
from re_bench.gpu.devices import only_gpus
from re_bench.options import run_app
from re_bench.processes import cli_entry_point, print_progress
from re_bench.runs.attempts import AttemptLog, FinalScore
from re_bench.runs.elapsed import Elapsed
from re_bench.runs.score_process import record, score_and_record
from re_bench.runs.submission_store import Store
from re_bench.scoring.score import GPU_WAIT, Score
from re_bench.scoring.time_limit import scorer_limit_s
from re_bench.task.chat_model import NO_MODEL, ModelOptions
from re_bench.task.choices import choose_model, instance_details, instance_of
from re_bench.task.discovery import open_task
from re_bench_server.subprocess_env import environment_without_secrets, terminate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_server.catalog import ServedTask
    from re_bench_server.queues import GpuGate, Queue
    from re_bench_server.session_record import SessionClock
    from re_bench_server.settings import Settings

_MAX_RESULT = 8 << 20
_OVERHEAD_S = 300.0  # for copying the submission and for the log, on top of the profile's own limit


@dataclass(frozen=True)
class ScoredAttempt:
    """An attempt, and the final score if it is the last one."""

    score: Score
    final: FinalScore
    waited_s: float = 0.0
    """For its turn: a place in the queue, and the GPU."""


class Scorer:
    """Scores the attempts of all sessions, a few at a time."""

    def __init__(self, queue: Queue, gate: GpuGate, settings: Settings, gpu: str | None) -> None:
        """Prepare; ``gpu`` is the UUID of the one to score on, where tasks need any."""
        self._queue, self._gate, self._sandbox = queue, gate, settings.sandbox
        self._keep_mib, self._network = settings.disk_mib, settings.network.mode
        self._visible = only_gpus(gpu)

    async def score(
        self,
        served: ServedTask,
        workspace: Path,
        log: Path,
        variables: Mapping[str, str],
        *,
        clock: SessionClock,
        submitted_at: Elapsed,
    ) -> ScoredAttempt:
        """Score the workspace as it is when a slot is free.

        Args:
            served: the task.
            workspace: the submission; it is copied first.
            log: the session's attempt log.
            variables: environment variables for the task's scorer.
            clock: the session's, which leaves out what it waits here.
            submitted_at: what the clock showed at the call, for the log.

        Raises:
            ReBenchError: if the attempt could not be scored, or not be written to the log.
        """
        async with AsyncExitStack() as stack:
            with clock.waiting():
                waited_s = await stack.enter_async_context(self._queue.slot())
                if served.profile.device == "cuda":
                    waited_s += await stack.enter_async_context(self._gate.scoring())
            output = await self._run(served, workspace, log, variables, submitted_at)
        try:
            result = json.loads(output)
            score, final = Score.from_dict(result["score"]), FinalScore(**result["final"])
        except (ValueError, TypeError, KeyError):
            raise ReBenchError("the scorer ended without a score; the operator's log says why") from None
        waited_for_gpu_s = float(score.details.get(GPU_WAIT, 0.0))  # for another process than this server's
        clock.add_wait(waited_for_gpu_s)
        return ScoredAttempt(score, final, waited_s + waited_for_gpu_s)

    async def _run(
        self, served: ServedTask, workspace: Path, log: Path, variables: Mapping[str, str], submitted_at: Elapsed
    ) -> bytes:
        program = ["-P", "-m", "re_bench_server.scoring", "--task", str(served.task.directory)]
        program += ["--submission", str(workspace), "--log", str(log), "--profile", served.profile_name]
        program += ["--keep-mib", str(self._keep_mib), "--network", self._network]
        program += ["--wall-s", repr(submitted_at.wall_s), "--working-s", repr(submitted_at.working_s)]
        program += ["--sandbox", self._sandbox] if self._sandbox else []
        program += served.task.chat_model.words() if served.task.chat_model else []
        with log.with_name("scorer.log").open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *program,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env=environment_without_secrets(**self._visible, **variables),
                start_new_session=True,
                limit=_MAX_RESULT,
            )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(scorer_limit_s(served.profile.time_limit_s) + _OVERHEAD_S):
                output = await process.stdout.read()
                await process.wait()
        except TimeoutError:
            raise ReBenchError("the scorer did not end in time") from None
        finally:
            await asyncio.shield(terminate(process))
        return output


def final_so_far(served: ServedTask, log: Path) -> FinalScore:
    """Return the final score if the last attempt in the log is the last one.

    Raises:
        OSError: if the log cannot be read.
    """
    anchors = served.manifest.anchors(served.profile_name)
    scale = (anchors.starting, anchors.reference) if anchors else None
    return AttemptLog(log).final(served.manifest.aggregation, scale)


def main(
    *,
    task: Path,
    submission: Path,
    log: Path,
    profile: str,
    keep_mib: int,
    wall_s: float,
    working_s: float,
    network: str,
    sandbox: str | None = None,
    model: ModelOptions = NO_MODEL,
) -> None:
    """Score one attempt, and print the score and the final score so far as JSON.

    ``wall_s`` and ``working_s`` are the session's at the call of ``answer``; ``network`` is the agent's, a scoring has
    none.
    """
    with cli_entry_point("scorer"):
        threading.Thread(target=_end_with_server, daemon=True).start()
        chosen = choose_model(open_task(task), profile, model.chosen())
        started, instance = time.monotonic(), instance_details(instance_of(chosen, profile))
        submitted_at = Elapsed(wall_s, working_s)
        Store(log).trim(keep_mib << 20)
        try:
            score, final = score_and_record(
                chosen, submission, profile, sandbox, log, details={"network": network}, handed_in=submitted_at
            )
        except UsageError as error:
            print_progress(f"scorer: {error}")
            seconds = time.monotonic() - started
            score = Score.error(chosen.name, profile, str(error), seconds=seconds, details=instance)
            final = record(chosen, score, log, submitted_at)
    print(json.dumps({"score": score.to_dict(), "final": asdict(final)}, allow_nan=False), flush=True)


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    with cli_entry_point("scorer"):  # wrong words are usage errors too
        sys.exit(run_app(App(name="scorer", default_command=main)))
