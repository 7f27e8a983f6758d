"""How a server starts and ends: by signals, by kill -9, over its limits, and what it says of itself meanwhile."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from server_process import Raw, Server, command_lines_naming, post, re_bench, serving, until


def test_an_ordered_end_leaves_logs_records_and_open_workspaces_and_nothing_else(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site) as server:
        ended, idle = Raw(server, "example_quick"), Raw(server, "example_quick")
        ended.call("answer")
        ended.call("bash", command="mkdir -p locked/in; chmod 0 locked")
        ended.delete()
        idle.call("bash", command="true")
        sockets = Path((server.state / "sockets").read_text())
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
        assert command_lines_naming(server.state) == []


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


def test_health_says_what_runs(server: Server) -> None:
    session = Raw(server, "example_quick")
    session.call("bash", command="echo -1 > answer.txt")
    session.call("answer")
    health = server.health()
    (one,) = [one for one in health["sessions"] if one["attempts"] == 1]
    assert (one["task"], one["doing"], one["best_reward"]) == ("example_quick", "idle", 0.5)
    assert (health["max_sessions"], health["free_disk_mib"] > 0) == (64, True)
    assert session.sid not in json.dumps(health) + server.log.read_text()
    session.delete()
