"""Scoring an attempt of a session, in a subprocess: ``python -m re_bench_server.scoring``.

The subprocess keeps a copy of the submission, for which the oldest copies make room, runs the task's scorer on the
copy, appends the attempt to the session's log, and prints ``{"score": ..., "final": ...}``: whatever the server reads
there is on the disk already. It gives up as soon as its stdin is closed, that is, when the server ends for whatever
reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.gpu.devices import only_gpus
from re_bench.processes import cli_entry_point, print_progress
from re_bench.runs.attempts import AttemptLog, FinalScore
from re_bench.runs.elapsed import Elapsed
from re_bench.runs.score_process import record, score_and_record
from re_bench.runs.submission_store import Store
from re_bench.scoring.score import GPU_WAIT, Score
from re_bench.scoring.time_limit import scorer_limit_s
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.choices import choose_model, instance_details, instance_of
from re_bench.task.discovery import open_task
from re_bench_server.subprocess_env import environment_without_secrets, terminate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_server.catalog import ServedTask
    from re_bench_server.queues import GpuGate, Queue
    from re_bench_server.session_clock import SessionClock
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
        handed_in: Elapsed,
    ) -> ScoredAttempt:
        """Score the workspace as it is when a slot is free.

        Args:
            served: the task.
            workspace: the submission; it is copied first.
            log: the session's attempt log.
            variables: environment variables for the task's scorer.
            clock: the session's, which leaves out what it waits here.
            handed_in: what the clock showed when the submission was handed in, for the log.

        Raises:
            ReBenchError: if the attempt could not be scored, or not be written to the log.
        """
        async with AsyncExitStack() as stack:
            with clock.waiting():
                waited_s = await stack.enter_async_context(self._queue.slot())
                if served.profile.device == "cuda":
                    waited_s += await stack.enter_async_context(self._gate.scoring())
            output = await self._run(served, workspace, log, variables, handed_in)
        try:
            result = json.loads(output)
            score, final = Score.from_dict(result["score"]), FinalScore(**result["final"])
        except (ValueError, TypeError, KeyError):
            raise ReBenchError("the scorer ended without a score; the operator's log says why") from None
        waited_for_gpu_s = float(score.details.get(GPU_WAIT, 0.0))  # for another process than this server's
        clock.add_wait(waited_for_gpu_s)
        return ScoredAttempt(score, final, waited_s + waited_for_gpu_s)

    async def _run(
        self, served: ServedTask, workspace: Path, log: Path, variables: Mapping[str, str], handed_in: Elapsed
    ) -> bytes:
        program = ["-P", "-m", "re_bench_server.scoring", "--task", str(served.task.directory)]
        program += ["--submission", str(workspace), "--log", str(log), "--profile", served.profile_name]
        program += ["--keep-mib", str(self._keep_mib), "--network", self._network]
        program += ["--wall-s", repr(handed_in.wall_s), "--working-s", repr(handed_in.working_s)]
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


def unscored_attempt(served: ServedTask, log: Path, message: str) -> ScoredAttempt:
    """Return an attempt that failed, with the final score of those in the log, of which it is the last.

    Raises:
        OSError: if the log cannot be read.
    """
    final = final_so_far(served, log)
    score = Score.error(served.task.name, served.profile_name, message)
    return ScoredAttempt(score, final)


def main() -> None:
    """Score one attempt, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--task", "--submission", "--log"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--sandbox")
    parser.add_argument("--keep-mib", type=int, required=True)
    for name in ("--wall-s", "--working-s"):
        parser.add_argument(name, type=float, required=True, help="of the session, when it was handed in")
    parser.add_argument("--network", required=True, help="which one the agent had; a scoring has none")
    add_model_options(parser)
    options = parser.parse_args()
    with cli_entry_point("scorer"):
        threading.Thread(target=_end_with_server, daemon=True).start()
        task = choose_model(open_task(options.task), options.profile, ChatModel.from_options(options))
        started, instance = time.monotonic(), instance_details(instance_of(task, options.profile))
        handed_in = Elapsed(options.wall_s, options.working_s)
        Store(options.log).trim(options.keep_mib << 20)
        try:
            score, final = score_and_record(
                task,
                options.submission,
                options.profile,
                options.sandbox,
                options.log,
                details={"network": options.network},
                handed_in=handed_in,
            )
        except UsageError as error:
            print_progress(f"scorer: {error}")
            seconds = time.monotonic() - started
            score = Score.error(task.name, options.profile, str(error), seconds=seconds, details=instance)
            final = record(task, score, options.log, handed_in)
    print(json.dumps({"score": score.to_dict(), "final": asdict(final)}, allow_nan=False), flush=True)


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
