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
from example_tasks import add_methods, make_tasks
from server_process import Raw, command_lines_naming, serving, until

from re_bench.untrusted_tree import remove_tree
from re_bench_server import subprocess_env
from re_bench_server.state_dir import StateDirectory

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.integration

PREPARING = """
    def prepare(self, setup):
        time.sleep(100)

"""
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_background_processes_end_with_the_hours_without_a_call(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site, "--hours", "0.005") as server:
        session = Raw(server, "example_quick")
        session.says("(while sleep 0.1; do echo -9 >> more; done) & disown")
        (directory,) = server.sessions()
        more = directory / "workspace" / "more"
        until(more.exists)

        def stopped() -> bool:
            before = more.stat().st_size
            time.sleep(1)
            return more.stat().st_size == before

        until(stopped)


DEEP = "python3 -c \"import os\nfor _ in range(5000): os.mkdir('d'); os.chdir('d')\""
"""More levels than Python's recursion limit, with a path longer than the system allows."""


def test_deep_directories_prevent_neither_the_end_nor_the_next_start(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site) as server:
        ended, kept = Raw(server, "example_quick"), Raw(server, "example_quick")
        for session in (ended, kept):
            session.says(f"(cd ~ && {DEEP}); (cd /var/tmp && {DEEP})")
        ended.says("echo -1 > answer.txt")
        output = ended.call("answer", get_final_score=True)["output"]
        assert (output["reward"], output["finished"]) == (0.5, True)
        ended.delete()
        until(lambda: [record["state"] for record in server.records().values()].count("ended") == 1)
        server.end(signal.SIGKILL)
    with serving(tmp_path, site) as server:
        (ended_at,) = (path for path in server.sessions() if server.records()[path.name]["state"] == "ended")
        assert not (ended_at / "home").exists()
        assert len(server.health()["sessions"]) == 1
    remove_tree(tmp_path)  # which pytest could not


@pytest.mark.parametrize(("host", "status"), [("evil.example", 400), ("localhost", 200), ("127.0.0.1:80", 200)])
def test_a_server_without_a_token_answers_to_local_names_only(
    tmp_path: Path, site: Path, host: str, status: int
) -> None:
    with serving(tmp_path, site) as server:
        connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=60)
        connection.request("GET", "/health", headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


def test_hours_over_ends_background_processes(tmp_path: Path, site: Path) -> None:
    # A busy machine may need longer until the command begins.
    assert any(nothing_outlasts_the_hours(tmp_path / hours, site, hours) for hours in ("0.001", "0.004", "0.015"))


def nothing_outlasts_the_hours(place: Path, site: Path, hours: str) -> bool:
    """Return false if no command started within the hours; otherwise check that nothing outlasts them."""
    over = "hours of this session are over"
    with serving(place, site, "--hours", hours, "--no-transcripts") as server:
        session = Raw(server, "example_quick")
        if over in session.says("(while sleep 0.1; do echo -9 >> more; done) & disown"):
            return False
        (directory,) = server.sessions()
        more = directory / "workspace" / "more"
        until(more.exists)
        until(lambda: server.health()["sessions"][0]["open_s"] > float(hours) * 3600 + 0.5)
        output = session.call("answer")["output"]
        assert output["metadata"]["status"] == "valid"
        size = more.stat().st_size
        time.sleep(0.5)
        assert more.stat().st_size == size
        assert over in session.says("true")
        assert session.call("answer", get_final_score=True)["output"]["finished"] is True
        assert not (directory / "transcript.jsonl").exists()
        return True


def test_sigterm_during_preparation(tmp_path: Path) -> None:
    site = make_tasks(tmp_path / "site")
    add_methods(site, "quick", PREPARING)
    with serving(tmp_path / "server", site) as server:
        session = Raw(server, "example_quick")
        until(lambda: [line for line in command_lines_naming(site) if "re_bench.task.prepare" in line])
        began = time.monotonic()
        assert server.end() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 60
        assert server.workspaces() == []
        assert command_lines_naming(site) == []
    add_methods(site, "quick")
    with serving(tmp_path / "server", site) as server:  # which creates the workspace
        session.server = server
        assert session.prompt().startswith("# quick")
        assert "a note" in session.says("cat notes.md")


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
