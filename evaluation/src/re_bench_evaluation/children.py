"""The processes of a run: its server and its agent, and how those are ended that a killed evaluation left running."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from re_bench.data.files import replace_file
from re_bench.data.jsonl import read_tail
from re_bench.errors import ReBenchError
from re_bench.processes import all_processes, began_with, command_line, end_processes, raise_if_stop_requested, tree
from re_bench.records import AGENT, AGENT_LOG, SERVER, SERVER_LOG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOKEN = "server.token"  # noqa: S105 - the name of a file
"""In a run's directory: what clients of its server send as their API key."""

_AGENT_MARK = "RE_BENCH_AGENT_OF"
_SERVER_MARK = "RE_BENCH_SERVER_OF"
_POLL_S = 0.1
_START_S = 1800.0
"""For a server to prepare its task and to listen; the data are prepared before, so this ends one that hangs."""
_DRAIN_S = 60
"""For commands and scorings that run when a run has reached a limit."""
_END_S = 30.0
_TAIL = 4096


class ServerError(ReBenchError):
    """A run's server did not start, or ended by itself."""


class Child:
    """A program of a run; leaving the ``with`` block ends it and all that it started."""

    def __init__(self, words: Sequence[str], log: Path, cwd: Path | None, environment: Mapping[str, str]) -> None:
        with log.open("ab") as output:
            self.log_start = output.tell()
            self.log = log
            self.process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=cwd,
                env=dict(environment),
                process_group=0,  # so that a terminal's interrupt reaches us alone, who stop the program
            )

    def signal(self, number: signal.Signals, wait_s: float) -> None:
        """Send a signal, and wait for the end; after ``wait_s`` seconds the program is killed."""
        try:
            self.process.send_signal(number)
            self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the program and what it has started, at once."""
        descendants = tree(self.process.pid) if self.process.poll() is None else ()
        group = [pid for pid in all_processes() if _group(pid) == self.process.pid]
        end_processes({*descendants, *group}, (signal.SIGKILL, _END_S))
        self.process.wait()

    def last_line(self) -> str:
        """Return the last line that it printed."""
        try:
            tail = read_tail(self.log, _TAIL, self.log_start)
            lines = tail.decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip()[:500] for line in reversed(lines) if line.strip()), "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None or _group_is_there(self.process.pid):
            self.kill()


class RunServer(Child):
    """The server of a run, whose state directory is the run's ``server``."""

    def __init__(self, run: Path, task: str, profile: str, options: Sequence[str], environment: dict[str, str]) -> None:
        """Start it.

        Args:
            run: the run's directory.
            task: the task's name.
            profile: the task's profile.
            options: further options of ``re-bench serve``.
            environment: its environment variables.
        """
        self.token = secrets.token_urlsafe(32)
        token_file = run / TOKEN
        replace_file(token_file, self.token.encode() + b"\n")
        words = [sys.executable, "-m", "re_bench.cli", "serve", "--port", "0", "--state", str(run / SERVER)]
        words += ["--task", task, "--profile", profile, "--token-file", str(token_file), "--max-sessions", "1"]
        words += ["--prepare", "--drain", str(_DRAIN_S), *options]
        super().__init__(words, run / SERVER_LOG, None, environment | {_SERVER_MARK: str(run)})

    def address(self) -> str:
        """Wait until it listens, and return its address.

        Raises:
            ServerError: if it ends before, or takes too long.
        """
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            raise_if_stop_requested()
            ended = self.process.poll() is not None
            with self.log.open("rb") as log:
                log.seek(self.log_start)
                if (address := _address(log.read())) is not None:
                    return address
            if ended:
                raise ServerError(f"its server did not start, {self.how_it_ended()}")
            time.sleep(_POLL_S)
        raise ServerError(f"its server did not listen within {_START_S:g} s: {self.last_line()}")

    def how_it_ended(self) -> str:
        """Return the exit status and the last line."""
        return f"exit status {self.process.returncode}: {self.last_line() or 'it printed nothing'}"

    def drain(self) -> None:
        """End it when what runs has ended, or at the end of the time for that."""
        self.signal(signal.SIGTERM, _DRAIN_S + _END_S)

    def suspend(self) -> None:
        """End it now; its session can be restored."""
        self.signal(signal.SIGINT, _END_S)


class RunAgent(Child):
    """The agent of a run."""

    def __init__(self, run: Path, words: Sequence[str], environment: dict[str, str]) -> None:
        """Start it in the run's directory ``agent``."""
        (run / AGENT).mkdir(exist_ok=True)
        super().__init__(words, run / AGENT_LOG, run / AGENT, environment | {_AGENT_MARK: str(run)})


def end_leftovers(directory: Path) -> int:
    """End the agents and servers of runs in a directory, whose evaluation was killed; return how many there were.

    Sessions of the servers can be restored; agents are killed.
    """
    agents, servers = [], []
    for pid in all_processes():
        if _is_of(directory, began_with(pid, _SERVER_MARK)):
            servers.append(pid)
        elif _is_of(directory, began_with(pid, _AGENT_MARK)) or _hidden_agent(directory, command_line(pid)):
            agents.append(pid)
    end_processes({pid for agent in agents for pid in tree(agent)}, (signal.SIGKILL, _END_S))
    # What a server has started ends with it, so it alone is asked to end, and the others only if they are left.
    started = {pid for server in servers for pid in tree(server)}
    leaders = {pid for pid in servers if "serve" in command_line(pid)}
    end_processes(leaders, (signal.SIGINT, _END_S), (signal.SIGKILL, _END_S))
    end_processes(started, (signal.SIGTERM, _END_S), (signal.SIGKILL, _END_S))
    return len(agents) + len(leaders)


def _is_of(directory: Path, run: str | None) -> bool:
    return run is not None and Path(run).is_relative_to(directory)


def _hidden_agent(directory: Path, words: list[str]) -> bool:
    """Tell whether a command line is that of mlab-agent at a run: it hides its environment from others."""
    agents = [word for option, word in itertools.pairwise(words) if option in {"--run", "resume"}]
    return any(_is_of(directory, word) and Path(word).name == AGENT for word in agents)


def _address(log: bytes) -> str | None:
    """Return the address that a server's log tells, once it serves."""
    for line in log.split(b"\n")[:-1]:
        if line.startswith(b"{") and b'"serving"' in line:
            entry = json.loads(line)
            if entry.get("event") == "serving":
                return str(entry["address"])
    return None


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _group_is_there(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except OSError:
        return False
    return True
