"""Start and end of a server, its limits, and ``/health``."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from server_process import Raw, Server, command_lines_naming, post, re_bench, serving, until

from re_bench.cli.main import main

pytestmark = pytest.mark.integration


def test_shutdown_keeps_records_and_open_workspaces(tmp_path: Path, site: Path) -> None:
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


def test_long_directory_for_temporary_files(tmp_path: Path, site: Path) -> None:
    (tmp_path / ("x" * 120)).mkdir()
    tasks = ("example_equipped",)  # with the sockets of a meter and a gateway
    with serving(tmp_path, site, tasks=tasks, TMPDIR=str(tmp_path / ("x" * 120))) as server:
        session = Raw(server, "example_equipped")
        found = session.call("bash", command="echo -1 > answer.txt; ls $RE_BENCH_EXPERIMENTS")
        assert found["output"]["metadata"]["exit_status"] == 0
        assert session.call("answer")["output"]["reward"] == 0.5
        session.delete()


def test_max_sessions(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site, "--max-sessions", "2") as server:
        one, two = Raw(server, "example_quick"), Raw(server, "example_quiet")
        body = {"task_spec": {"id": "example_quick"}}
        status, reply = post(server.url, "/create", body, {"X-Session-ID": "three"})
        assert status == 429
        assert "maximum of 2 sessions" in reply["detail"]
        two.delete()
        Raw(server, "example_quick", sid="three").delete()
        one.delete()
        until(lambda: server.workspaces() == [])


def test_state_directory_is_exclusive(server: Server) -> None:
    done = re_bench("serve", "--port", "0", "--profile", "cpu", "--state", str(server.state))
    assert done.returncode == 2
    assert "in use by another server" in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])  # noqa: S104 - they are refused
def test_public_address_needs_a_token_or_insecure(host: str, tmp_path: Path) -> None:
    done = re_bench("serve", "--host", host, "--port", "0", "--state", str(tmp_path))
    assert done.returncode == 2
    assert "add --token-file FILE, or --insecure" in done.stderr


@pytest.mark.parametrize("text", ["", "a b"])
def test_malformed_token_file_is_rejected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    done = re_bench("serve", "--token-file", str(file), "--state", str(tmp_path / "state"))
    assert (done.returncode, "expected one line with a token" in done.stderr) == (2, True)


def test_port_in_use(server: Server, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    taken = re_bench("serve", "--port", port, "--state", str(tmp_path))
    assert (taken.returncode, len(taken.stderr.splitlines())) == (2, 1)
    assert "try another --host or --port" in taken.stderr


def test_health(server: Server) -> None:
    session = Raw(server, "example_quick")
    session.call("bash", command="echo -1 > answer.txt")
    session.call("answer")
    health = server.health()
    (one,) = [one for one in health["sessions"] if one["attempts"] == 1]
    assert (one["task"], one["doing"], one["best_reward"]) == ("example_quick", "idle", 0.5)
    assert (health["max_sessions"], health["free_disk_mib"] > 0) == (64, True)
    assert session.sid not in json.dumps(health) + server.log.read_text()
    session.delete()


def answered(session: Raw, number: str, **arguments: Any) -> tuple[str, str, Any]:
    """Submit a number; return status, text and output."""
    session.call("bash", command=f"echo {number} > answer.txt")
    output = session.call("answer", **arguments)["output"]
    return output["metadata"]["status"], output["blocks"][0]["text"], output


def test_max_attempts(tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--max-attempts", "3")
    with serving(tmp_path, site, *options) as server:
        session = Raw(server, "example_quick")
        assert "up to 3 times; it returns the score" in session.prompt()
        assert [answered(session, number)[0] for number in ("-1", "crash", "leave", "none")] == [
            "valid", "error", "error", "invalid",
        ]  # fmt: skip
        (record,) = server.records().values()
        assert (record["attempts"], record["scored"], record["max_attempts"]) == (4, 2, 3)
    with serving(tmp_path, site, *options) as server:
        session.server = server
        session.call("bash", command="true")
        assert "up to 3 times (1 left)" in session.prompt()
        assert answered(session, "-0.5")[0] == "valid"
        (name,) = server.records()
        status, message, output = answered(session, "-2")
        assert (status, output["finished"], output["reward"]) == ("error", False, 0.0)
        assert "Nothing was scored: all 3 attempts of this session are used up" in message
        assert main(["sessions", "list", "--json", "--state", str(server.state)]) == 0
        assert json.loads(capsys.readouterr().out)["sessions"][0]["scored"] == 3
        status, message, output = answered(session, "-2", get_final_score=True)
        assert (status, output["finished"], output["reward"]) == ("finished", True, 0.5)
        assert "Final score, the lowest of 2 valid attempts (5 in all): raw score -1 " in message
        assert output["metadata"]["final"] == {
            "raw": -1.0, "reward": 0.5, "aggregation": "min", "attempts": 5, "valid": 2,
        }  # fmt: skip
        assert server.records()[name]["state"] == "finished"
