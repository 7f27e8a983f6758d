"""Sessions after a restart of a killed server."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from example_tasks import EXAMPLES, ask_command, experiment_command, make_tasks
from free_port import free_port
from server_process import Raw, Server, command_lines_naming, opened, post, running_scorers, serving, text, until
from test_model import KEY, upstream  # noqa: F401 - a fixture

from re_bench.attempts.log import AttemptLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from test_model import Upstream

pytestmark = pytest.mark.integration

ANSWERED = r"hi\n\[exit status 0\](\n\[waited \d+ s for another call of this session\])?"
"""Output of a command that asks the model; on a loaded machine with a queue time."""
NOTICE = "[The server was restarted. All processes of this session were lost"


@dataclass
class Restarted:
    """A server that continues after a killed one."""

    server: Server
    sessions: dict[str, Raw]
    calls: dict[str, str]
    """The SDK's IDs of interrupted calls."""
    names: dict[str, str]
    """The names of the sessions."""

    def directory(self, session: str) -> Path:
        return self.server.state / "sessions" / self.names[session]

    def statuses(self, session: str) -> list[str]:
        return [attempt.status for attempt in AttemptLog(self.directory(session) / "attempts.jsonl").read().attempts]


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Restarted]:
    place = tmp_path_factory.mktemp("restarted")
    names: dict[str, str] = {}
    with serving(place, site, "--max-sessions", "8", tasks=EXAMPLES) as server:
        sessions, calls = populate(server, names)
        server.end(signal.SIGKILL)
        # Sandboxes, scorers and the meter end by themselves, without the next server.
        until(lambda: command_lines_naming(server.state) == [])
    spoil(server.state / "sessions")
    with serving(place, site, "--max-sessions", "8", tasks=EXAMPLES) as server:
        for session in sessions.values():
            session.server = server
        yield Restarted(server, sessions, calls, names)


def populate(server: Server, names: dict[str, str]) -> tuple[dict[str, Raw], dict[str, str]]:
    """Create sessions in all states in which a kill can find them."""
    sessions, calls = dict[str, Raw](), dict[str, str]()

    def begin(name: str, task: str, command: str) -> Raw:
        session = sessions[name] = Raw(server, task)
        session.says(command)
        (names[name],) = {path.name for path in server.sessions()} - set(names.values())
        return session

    scored = begin("scored", "example_quick", "echo kept > file; echo kept > ~/file; mkdir d; cd d; sleep 900 & true")
    scored.says("echo -1 > ../answer.txt")
    scored.call("answer")
    command = begin("command", "example_quick", "true").start("bash", command="echo begun > file; sleep 60")
    outcome = begin("outcome", "example_quick", "echo -1.5 > answer.txt").start("answer")
    final = begin("final", "example_quick", "echo -2 > answer.txt").start("answer", get_final_score=True)
    until(lambda: server.records()[names["final"]]["state"] == "finished")
    until(lambda: server.records()[names["outcome"]]["attempts"] == 1)
    answer = begin("answer", "example_quiet", "echo sleep 60 1 > answer.txt").start("answer")
    calls |= {"command": command, "answer": answer, "outcome": outcome, "final": final}
    equipped = begin("equipped", "example_equipped", "true")
    assert '"run": 1' in equipped.says(experiment_command(16))
    begin("deleted", "example_quick", "true").delete()
    begun = server.state / "sessions" / names["command"] / "workspace" / "file"
    until(lambda: running_scorers(server) and begun.exists())
    return sessions, calls


def spoil(sessions: Path) -> None:
    """Add a session with a damaged record, and one whose task is not served any more."""
    for name, record in (("damaged", "{"), ("unserved", json.dumps({
        "v": 1, "name": "unserved", "task": "gone", "profile": "cpu", "client": "x", "opened": "x", "state": "open",
    }))):  # fmt: skip
        (sessions / name / "workspace").mkdir(parents=True)
        (sessions / name / "session.json").write_text(record)


def test_sessions_are_restored(restarted: Restarted) -> None:
    shown = {one["name"]: one for one in restarted.server.health()["sessions"]}
    assert shown.keys() == {restarted.names[name] for name in restarted.sessions} - {restarted.names["deleted"]}
    assert {one["doing"] for one in shown.values()} == {"waiting for its client"}
    assert shown[restarted.names["scored"]]["best_reward"] == 0.5
    for session in restarted.sessions.values():
        assert session.sid not in "".join(path.read_text() for path in restarted.server.state.rglob("session.json"))


def test_restored_session_reports_the_restart(restarted: Restarted) -> None:
    session = restarted.sessions["scored"]
    assert session.post("/ping", {})[0] == 200
    # on a busy machine the fixture may have taken minutes
    assert re.search(r"(8\.00|7\.9\d) hours left of 8; this session continues", session.prompt())
    first = session.says("pwd; cat file ~/file; jobs")
    assert first.startswith(NOTICE)
    assert first.endswith("]\n/workspace\nkept\nkept\n[exit status 0]")
    assert session.says("true") == "[exit status 0]"
    output = session.call("answer", get_final_score=True)["output"]
    assert (output["finished"], output["metadata"]["final"]["attempts"]) == (True, 2)


def test_running_command_is_interrupted(restarted: Restarted) -> None:
    session = restarted.sessions["command"]
    output = session.result_of(restarted.calls["command"])
    assert (output["metadata"]["status"], output["reward"], output["finished"]) == ("interrupted", 0.0, False)
    assert "may have run partially" in output["blocks"][0]["text"]
    assert session.says("cat file").endswith("]\nbegun\n[exit status 0]")


def test_running_scoring_is_an_error(restarted: Restarted) -> None:
    session = restarted.sessions["answer"]
    assert restarted.statuses("answer") == ["error"]
    assert session.result_of(restarted.calls["answer"], "answer")["metadata"]["status"] == "interrupted"
    assert "was interrupted and does not count" in session.says("echo 2 > answer.txt")
    assert session.call("answer")["output"]["metadata"]["attempt"] == 2


def test_logged_attempt_is_returned_after_a_restart(restarted: Restarted) -> None:
    output = restarted.sessions["outcome"].result_of(restarted.calls["outcome"], "answer")
    assert (output["reward"], output["metadata"]["attempt"], output["metadata"]["raw"]) == (0.75, 1, -1.5)


def test_finished_episode_returns_its_final_score_again(restarted: Restarted) -> None:
    session = restarted.sessions["final"]
    output = session.result_of(restarted.calls["final"], "answer")
    assert (output["reward"], output["finished"], output["metadata"]["final"]["raw"]) == (1.0, True, -2.0)
    assert session.call("bash", command="true")["reason"] == "episode_finished"


def test_meter_and_model_after_a_restart(restarted: Restarted) -> None:
    session = restarted.sessions["equipped"]
    assert '"run": 2' in session.says(experiment_command(16))
    assert "asked: hi" in session.says(ask_command("hi"))


def test_deleted_session_keeps_its_record(restarted: Restarted) -> None:
    record = json.loads((restarted.directory("deleted") / "session.json").read_text())
    assert (record["state"], record["reason"], record["final"]) == ("ended", "deleted by its client", None)
    assert restarted.sessions["deleted"].post("/ping", {})[0] == 404


def test_unrestorable_sessions_are_logged_and_kept(restarted: Restarted) -> None:
    kept = {event["session"]: event["reason"] for event in restarted.server.events() if "kept" in event["event"]}
    assert "it is damaged" in kept["damaged"]
    assert "unknown task id 'gone'" in kept["unserved"]
    assert all((restarted.server.state / "sessions" / name / "workspace").is_dir() for name in kept)


def test_restored_sessions_count_and_can_be_created_again(restarted: Restarted) -> None:
    others = [Raw(restarted.server, "example_quick") for _ in range(2)]
    body = {"task_spec": {"id": "example_quick"}}
    assert post(restarted.server.url, "/create", body, {"X-Session-ID": "more"})[0] == 429
    session = restarted.sessions["outcome"]
    assert session.create()[0] == 200
    session.task = "example_quiet"
    assert "has the task example_quick" in session.create()[1]["detail"]
    assert session.says("cat answer.txt").endswith("-1.5\n[exit status 0]")
    for other in others:
        other.delete()


def test_unclaimed_session_is_closed_with_a_final_score(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site) as server:
        for number in (-1, None):
            session = Raw(server, "example_quick")
            if number is not None:
                session.says(f"echo {number} > answer.txt")
                session.call("answer")
        server.end()
    with serving(tmp_path, site, "--reclaim", "0.5") as server:
        until(lambda: server.health()["sessions"] == [] and server.workspaces() == [])
        records = sorted(server.records().values(), key=lambda record: record["attempts"])
        assert [record["state"] for record in records] == ["ended", "ended"]
        assert "did not return within 0.5 s" in records[0]["reason"]
        assert (records[0]["final"], records[1]["final"]["reward"]) == (None, 0.5)


def test_killed_scorer_leaves_no_files(tmp_path: Path, site: Path) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    with serving(tmp_path, site, TMPDIR=str(temporary)) as server:
        session = Raw(server, "example_quick")
        session.says("echo sleep 50 1 > answer.txt")
        session.start("answer")
        (scorer,) = until(lambda: running_scorers(server))
        until(lambda: list(temporary.rglob("re-bench-score-*")))
        os.kill(scorer, signal.SIGSTOP)  # keeps it from removing them
        server.end(signal.SIGKILL)
        os.kill(scorer, signal.SIGKILL)
    with serving(tmp_path, site, TMPDIR=str(temporary)) as server:
        assert list(temporary.rglob("re-bench-score-*")) == []
        assert "sleep 50 1" in Raw(server, "example_quick", sid=session.sid).says("cat answer.txt")


def test_key_must_be_sent_again_after_a_restart(tmp_path: Path, upstream: Upstream) -> None:  # noqa: F811 - the fixture
    site = make_tasks(tmp_path / "site")
    manifest = site / "equipped" / "task.toml"
    manifest.write_text(manifest.read_text().replace('key = ["paper"]', 'key = ["cpu"]'))
    secrets = base64.b64encode(json.dumps({"openai_api_key": {"value": KEY}}).encode()).decode()
    url = f"http://127.0.0.1:{upstream.server_port}/v1"
    with serving(tmp_path / "server", site, tasks=EXAMPLES, OPENAI_BASE_URL=url) as server:
        session = Raw(server, "example_equipped", **{"X-Secrets": secrets})
        assert re.fullmatch(ANSWERED, session.says(ask_command("hi")))
        server.end(signal.SIGKILL)
    with serving(tmp_path / "server", site, tasks=EXAMPLES, OPENAI_BASE_URL=url) as server:
        session.server, session.headers = server, {}
        assert "secret openai_api_key is never stored" in session.says("true")
        assert "send it again with POST /create" in session.call("answer")["output"]["metadata"]["message"]
        assert session.create(**{"X-Secrets": secrets})[0] == 200
        assert re.fullmatch(ANSWERED, session.says(ask_command("hi")))
        assert upstream.keys == [f"Bearer {KEY}"] * 2
        for path in server.state.rglob("*"):
            assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_openreward_client_survives_a_restart(tmp_path: Path, site: Path) -> None:
    """``ors-sdk`` does, too, but gives up after three seconds, which a start may exceed."""
    port = free_port()
    outputs: list[Any] = []
    with serving(tmp_path, site, "--port", str(port)) as server:
        caller = threading.Thread(target=asyncio.run, args=(calling(server.url, outputs),))
        caller.start()
        until(lambda: list(server.state.glob("sessions/*/workspace/file")))
        server.end(signal.SIGKILL)
    with serving(tmp_path, site, "--port", str(port)) as server:
        caller.join(60)
        lost, after = outputs
        assert (lost.metadata["status"], "may have run partially" in text(lost)) == ("interrupted", True)
        assert text(after).endswith("]\nbegun\n[exit status 0]")
        assert [record["reason"] for record in server.records().values()] == ["deleted by its client"]


async def calling(url: str, outputs: list[Any]) -> None:
    async with opened("openreward", url, "example_quick") as session:
        outputs.append(await session.call_tool("bash", {"command": "echo begun > file; sleep 60"}))
        outputs.append(await session.call_tool("bash", {"command": "cat file"}))
