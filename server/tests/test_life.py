"""How a server starts and ends: by signals, by kill -9, over its limits, and what it says of itself meanwhile."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from server_process import Raw, Server, command_lines_naming, post, re_bench, serving, until

if TYPE_CHECKING:
    from collections.abc import Iterator


FRAME = "\x1b[H\x1b[2Jok, up 0:0"
"""How each view of a server begins in its first ten minutes."""


def test_an_ordered_end_leaves_logs_records_and_open_workspaces_and_nothing_else(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site) as server, watching(server) as view:
        ended, idle = Raw(server, "example_quick"), Raw(server, "example_quick")
        ended.call("answer")
        ended.call("bash", command="mkdir -p locked/in; chmod 0 locked")
        ended.delete()
        idle.call("bash", command="true")
        sockets = Path((server.state / "sockets").read_text())
        seen = two_frames(view)
        assert server.end() == 128 + signal.SIGTERM
        files = sorted(sorted(path.name for path in directory.iterdir()) for directory in server.sessions())
        assert files == [
            [
                "attempts.jsonl",
                "attempts.jsonl.records",
                "attempts.jsonl.submissions",
                "scorer.log",
                "session.json",
                "transcript.jsonl",
            ],
            ["home", "session.json", "transcript.jsonl", "workspace"],
        ]
        assert sorted(record["state"] for record in server.records().values()) == ["ended", "open"]
        assert not sockets.exists()
        assert server.events()[-1]["event"] == "ended"
        assert view.stdout is not None
        assert view.stderr is not None
        reply, complained = seen + view.stdout.read(), view.stderr.read()
        view.wait(60)
        assert reply.count(FRAME) > 1
        assert " of 64 sessions" in reply
        assert "no server answers" in complained
        assert view.returncode == 1
        assert command_lines_naming(server.state) == []


@contextlib.contextmanager
def watching(server: Server) -> Iterator[subprocess.Popen[str]]:
    """Run the view of a server that is renewed until the server ends."""
    command = [sys.executable, "-m", "re_bench.cli", "serve", "--watch", "--port", server.url.rpartition(":")[2]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
        yield view


def two_frames(view: subprocess.Popen[str]) -> str:
    """Read what a view shows until it has been renewed once."""
    assert view.stdout is not None
    seen = ""
    while seen.count(FRAME) < 2:
        character = view.stdout.read(1)
        assert character, seen
        seen += character
    return seen


def test_a_ceiling_on_sessions_with_a_clear_refusal(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site, "--max-sessions", "2") as server:
        one, two = Raw(server, "example_quick"), Raw(server, "example_quiet")
        body = {"task_spec": {"id": "example_quick"}}
        status, reply = post(server.url, "/create", body, {"X-Session-ID": "three"})
        assert status == 429
        assert "holds 2 sessions" in reply["detail"]
        two.delete()
        Raw(server, "example_quick", sid="three").delete()
        one.delete()
        until(lambda: server.workspaces() == [])


def test_a_second_server_in_the_same_directory_is_refused(server: Server) -> None:
    done = re_bench("serve", "--port", "0", "--profile", "cpu", "--state", str(server.state))
    assert done.returncode == 2
    assert "another server keeps its sessions there" in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])  # noqa: S104 - they are refused
def test_an_address_that_others_reach_needs_a_token_or_a_flag(host: str, tmp_path: Path) -> None:
    done = re_bench("serve", "--host", host, "--port", "0", "--state", str(tmp_path))
    assert done.returncode == 2
    assert "--token-file FILE, or type --insecure" in done.stderr


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [("short", 0o600, "at least 16 characters"), ("x" * 20, 0o644, "others can read"), ("a b " * 9, 0o600, "spaces")],
)
def test_a_token_that_is_none_is_refused(tmp_path: Path, text: str, mode: int, reason: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    done = re_bench("serve", "--token-file", str(file), "--state", str(tmp_path / "state"))
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_port_in_use_and_a_profile_that_no_task_has_are_one_line(server: Server, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    taken = re_bench("serve", "--port", port, "--state", str(tmp_path))
    assert (taken.returncode, len(taken.stderr.splitlines())) == (2, 1)
    assert "try another --host or --port" in taken.stderr


def test_scorings_take_turns_and_say_how_long_they_waited(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site, "--scorings", "1") as server:
        sessions = [Raw(server, "example_quick") for _ in range(3)]
        outcome: list[Any] = []
        for session in sessions:
            session.call("bash", command=f"echo wait {tmp_path}/go -1 > answer.txt")
        callers = [threading.Thread(target=lambda s=session: outcome.append(s.call("answer"))) for session in sessions]
        for caller in callers:
            caller.start()
        until(lambda: server.health()["scorings"] == {"running": 1, "waiting": 2})
        began = time.monotonic()
        view = re_bench("serve", "--status", "--port", server.url.rpartition(":")[2]).stdout
        assert "scorings: 1 running, " in view
        assert "  answer  " in view
        time.sleep(max(0.0, began + 1.1 - time.monotonic()))
        (tmp_path / "go").touch()
        for caller in callers:
            caller.join(60)
        texts = sorted(
            (item["output"]["metadata"]["waited_s"], item["output"]["blocks"][0]["text"]) for item in outcome
        )
        assert texts[0][0] < 1
        assert "waited" not in texts[0][1]
        assert texts[2][0] > texts[1][0] > 1
        assert f"The scoring waited {texts[2][0]:.0f} s for its turn." in texts[2][1]


def test_the_status_says_what_runs(server: Server) -> None:
    session = Raw(server, "example_quick")
    session.call("bash", command="echo -1 > answer.txt")
    session.call("answer")
    port = server.url.rpartition(":")[2]
    done = re_bench("serve", "--status", "--port", port)
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if "example_quick" in line and "idle" in line)
    assert row.split()[-3:] == ["1", "0.5000", "-"]
    as_json: dict[str, Any] = json.loads(re_bench("serve", "--status", "--port", port, "--json").stdout)
    assert [one["attempts"] for one in as_json["sessions"]] == [1]
    assert session.sid not in json.dumps(as_json) + server.log.read_text()
    session.delete()
    nobody = re_bench("serve", "--status", "--port", "1")
    assert (nobody.returncode, "no server answers" in nobody.stderr) == (1, True)
