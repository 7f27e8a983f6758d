"""Unusual ends: hours over, shutdown during preparation, stubborn subprocesses."""

from __future__ import annotations

import asyncio
import http.client
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from server_process import Raw, Server, serving, until

from re_bench_server import subprocess_env
from re_bench_server.state_dir import StateDirectory

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.integration

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
print(child.pid, flush=True)
time.sleep(60)
"""


HOSTS = {"evil.example": 400, "localhost": 200, "127.0.0.1:80": 200}


def test_a_server_without_a_token_answers_to_local_names_only(server: Server) -> None:
    for host, status in HOSTS.items():
        connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=60)
        connection.request("GET", "/health", headers={"Host": host})
        assert connection.getresponse().status == status, host
        connection.close()


def test_hours_over_ends_background_processes(tmp_path: Path, site: Path) -> None:
    # A busy machine may need longer until the commands begin.
    assert any(nothing_outlasts_the_hours(tmp_path / hours, site, hours) for hours in ("0.0015", "0.005", "0.02"))


def nothing_outlasts_the_hours(place: Path, site: Path, hours: str) -> bool:
    """Return false if a command did not start within the hours; otherwise check that nothing outlasts them.

    One session makes calls after the hours, the other one does not.
    """
    over = "hours of this session are over"
    with serving(place, site, "--hours", hours, "--no-transcripts") as server:
        idle, session = Raw(server, "example_quick"), Raw(server, "example_quick")
        for one in (idle, session):
            if over in one.says("(while sleep 0.1; do echo -9 >> more; done) & disown"):
                return False
        written = [workspace / "more" for workspace in server.workspaces()]
        until(lambda: all(more.exists() for more in written))
        hours_s = float(hours) * 3600
        until(lambda: all(one["open_s"] > hours_s + 0.5 for one in server.health()["sessions"]))
        output = session.call("answer")["output"]
        assert output["metadata"]["status"] == "valid"
        until(lambda: stopped(written))
        assert over in session.says("true")
        assert session.call("answer", get_final_score=True)["output"]["finished"] is True
        assert list(server.state.glob("sessions/*/transcript.jsonl")) == []
        return True


def stopped(written: list[Path]) -> bool:
    """Return whether several periods of the loop pass without a change of a file."""
    before = [path.stat().st_size for path in written]
    time.sleep(0.5)
    return [path.stat().st_size for path in written] == before


def test_terminate_kills_descendants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_env, "_GRACE_S", 0.2)
    asyncio.run(stubborn())


async def stubborn() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STUBBORN, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    child = int(await process.stdout.readline())
    await subprocess_env.terminate(process)
    assert process.returncode == -signal.SIGKILL
    until(lambda: not alive(child))


def alive(pid: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in {"", "Z"}


def test_incomplete_copies_are_removed_at_start(tmp_path: Path) -> None:
    session = tmp_path / "sessions" / "one"
    half = session / "attempts.jsonl.submissions" / ".incoming-x"
    half.mkdir(parents=True)
    (half.parent / "whole").mkdir()
    (session / "attempts.jsonl").write_text("")
    (session.parent / "without a record").mkdir()
    (tmp_path / "sockets").write_text(str(tmp_path / "no such directory"))
    tmp_path.chmod(0o755)
    StateDirectory(tmp_path).close()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert session.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in half.parent.iterdir()] == ["whole"]
    assert list(session.parent.iterdir()) == [session]
