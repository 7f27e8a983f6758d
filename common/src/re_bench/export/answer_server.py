"""The tool ``answer`` beside an agent's container: an MCP server that scores the workspace, and keeps the log.

As a program: ``python3 -m re_bench.export.answer_server TASK --workspace DIR --log FILE --attempts N``. It needs the
package mcp (``common[mcp]``), and serves the transport ``streamable-http`` at ``/mcp``.
"""

from __future__ import annotations

import argparse
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, print_progress
from re_bench.runs.attempts import AttemptLog
from re_bench.runs.score_process import score_and_record
from re_bench.sandbox import BACKENDS
from re_bench.task.discovery import find_task
from re_bench.task.profile_choice import profile_name
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.fastmcp import FastMCP

    from re_bench.scoring.score import Score
    from re_bench.task.discovery import Task

_PORT = 8000
_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - the agent is in another container of a network of their own
_FAILED = "The workspace could not be scored, which is not your fault. Try again; the operator's log says why."


@dataclass
class Answers:
    """What ``answer`` does, one call at a time."""

    task: Task
    profile: str
    workspace: Path
    log: Path
    attempts: int
    """How many attempts are scored; those that we fail to score are not counted."""
    sandbox: str | None = None
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def answer(self) -> str:
        """Score a copy of the workspace as it is, and return what the agent is told."""
        with self._one_at_a_time:
            if self._left() < 1:
                return f"Nothing was scored: all {self.attempts} attempts are used up."
            try:
                request = (self.task, self.workspace, self.profile, self.sandbox, self.log)
                score, final = score_and_record(*request)
            except ReBenchError as error:
                print_progress(f"answer: {error}")
                return _FAILED
            return f"Attempt {final.attempt}: {self._told(score)}\n{self._left()} attempts are left."

    def _left(self) -> int:
        scored = [attempt for attempt in AttemptLog(self.log).read().attempts if attempt.status != "error"]
        return self.attempts - len(scored)

    def _told(self, score: Score) -> str:
        if score.status == "error":
            return _FAILED
        if score.status == "invalid":
            return f"invalid, which counts as no score.\n{score.message}"
        if not self.task.manifest.show_score:
            return f"valid. This task does not tell its score.\n{score.message}"
        reward = "" if score.reward is None else f", reward {score.reward:z.4f}"
        return f"raw score {score.raw:z.6g} {self.task.manifest.unit}{reward}\n{score.message}"


def server_of(answers: Answers, host: str = _ALL_ADDRESSES, port: int = _PORT) -> FastMCP:
    """Return the MCP server with the tool.

    Raises:
        UsageError: if the package mcp is missing.
    """
    try:
        from anyio.to_thread import run_sync  # noqa: PLC0415 - with mcp, which most users do not need
        from mcp.server.fastmcp import FastMCP  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(f"the package {error.name} is missing; run: pip install 're-bench-common[mcp]'") from None

    server = FastMCP("re-bench", host=host, port=port, stateless_http=True)

    async def answer() -> str:
        return await run_sync(answers.answer)

    text = f"Score a copy of the workspace as it is, up to {answers.attempts} times, and return what can be told of it."
    server.add_tool(answer, description=text)
    return server


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="answer_server", description="Offer the tool answer over MCP.")
    parser.add_argument("task", metavar="TASK", help="a task's name or id, or its directory")
    parser.add_argument("--workspace", metavar="DIR", type=Path, required=True, help="what is scored")
    parser.add_argument("--log", metavar="FILE", type=Path, required=True, help="the attempt log")
    parser.add_argument("--attempts", metavar="N", type=int, required=True, help="how many are scored")
    parser.add_argument("--host", default=_ALL_ADDRESSES, help="the address to listen on (default: all)")
    parser.add_argument("--port", type=int, default=_PORT, help=f"default: {_PORT}")
    parser.add_argument(
        "--sandbox",
        choices=BACKENDS,
        help="what submissions run in; 'none' protects nothing and is recorded in the score",
    )
    add_profile_option(parser)
    options = parser.parse_args(arguments)
    with cli_entry_point("answer_server"):
        task = find_task(options.task)
        profile = profile_name(task, options.profile)
        task.profile(profile)
        options.log.parent.mkdir(parents=True, exist_ok=True)
        answers = Answers(task, profile, options.workspace, options.log, options.attempts, options.sandbox)
        server_of(answers, options.host, options.port).run("streamable-http")


if __name__ == "__main__":
    main()
