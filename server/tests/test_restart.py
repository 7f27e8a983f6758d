"""Sessions after a restart of a killed server."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
from example_tasks import ask_command, experiment_command
from free_port import free_port
from killed_server import MAX_SESSIONS, SECRETS, Restarted, restarted_server
from server_process import Raw, opened, post, serving, text, until
from test_model import KEY

from re_bench.attempts.elapsed import Interval
from re_bench.cli.main import main
from re_bench.data.instances import secret_name
from re_bench.untrusted_tree import remove_tree
from re_bench_evaluation.working_time import attempt_times, session_periods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

ANSWERED = r"hi\n\[exit status 0\](\n\[waited \d+ s for another call of this session\])?"
"""Output of a command that asks the model; on a loaded machine with a queue time."""
NOTICE = "[The server was restarted. All processes of this session were lost"
ENDED = {"deleted", "deep, ended"}


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarted]:
    place = tmp_path_factory.mktemp("restarted")
    with restarted_server(place) as restarted:
        yield restarted
    remove_tree(place)  # which pytest cannot, since directories are too deep


def test_sessions_are_restored(restarted: Restarted) -> None:
    shown = {one["name"]: one for one in restarted.server.health()["sessions"]}
    assert shown.keys() == {name for session, name in restarted.names.items() if session not in ENDED}
    assert {one["doing"] for one in shown.values()} == {"waiting for its client"}
    assert shown[restarted.names["scored"]]["best_reward"] == 0.5
    for session in restarted.sessions.values():
        assert session.sid not in "".join(
            path.read_text() for path in restarted.server.state.glob("sessions/*/session.json")
        )


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
    assert [attempt.status for attempt in restarted.attempts("answer")] == ["error"]
    assert session.result_of(restarted.calls["answer"], "answer")["metadata"]["status"] == "interrupted"
    assert "was interrupted and does not count" in session.says("echo 2 > answer.txt")
    assert session.call("answer")["output"]["metadata"]["attempt"] == 2


def test_killed_scorer_leaves_no_files(restarted: Restarted) -> None:
    assert restarted.left == []
    assert "sleep 50 1" in restarted.sessions["stopped"].says("cat answer.txt")


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
    record = restarted.record("deleted")
    assert (record["state"], record["reason"], record["final"]) == ("ended", "deleted by its client", None)
    assert restarted.sessions["deleted"].post("/ping", {})[0] == 404


def test_deep_directories_prevent_neither_the_end_nor_the_next_start(restarted: Restarted) -> None:
    assert restarted.record("deep, ended")["state"] == "ended"
    assert not (restarted.directory("deep, ended") / "home").exists()
    assert "deep" in restarted.sessions["deep"].says("ls ~")


def test_unrestorable_sessions_are_logged_and_kept(restarted: Restarted) -> None:
    kept = {event["session"]: event["reason"] for event in restarted.server.events() if "kept" in event["event"]}
    assert "it is damaged" in kept["damaged"]
    assert "unknown task id 'gone'" in kept["unserved"]
    assert all((restarted.server.state / "sessions" / name / "workspace").is_dir() for name in kept)


def test_restored_session_keeps_its_instance(restarted: Restarted) -> None:
    old = restarted.sessions["chosen"]
    assert '"run": 31' in old.says(experiment_command(16))
    old.call("answer")
    old.says("echo leave > answer.txt")
    old.call("answer")
    scores = [(attempt.status, attempt.raw, attempt.details["instance"]) for attempt in restarted.attempts("chosen")]
    assert scores == [("valid", 31.0, 30), ("valid", 31.0, 30), ("error", None, 30)]
    new = restarted.begin("new", "chosen", "echo 1 > answer.txt")
    assert '"run": 51' in new.says(experiment_command(16))
    new.call("answer")
    assert [(attempt.raw, attempt.details["instance"]) for attempt in restarted.attempts("new")] == [(51.0, 50)]
    assert restarted.logged("task_instance", "example_chosen") == [30, 50]
    assert restarted.logged("session_restored", "example_chosen") == [30]
    new.delete()


def test_changed_machine_secret_is_logged(restarted: Restarted) -> None:
    (changed,) = [entry for entry in restarted.server.events() if entry["event"] == "instance_changed"]
    assert (changed["instance"], changed["now"]) == (restarted.secret, secret_name())
    assert restarted.secret != secret_name()


def test_key_must_be_sent_again_after_a_restart(restarted: Restarted) -> None:
    session = restarted.sessions["keyed"]
    session.headers = {}
    assert "secret openai_api_key is never stored" in session.says("true")
    assert "send it again with POST /create" in session.call("answer")["output"]["metadata"]["message"]
    assert session.create(**SECRETS)[0] == 200
    assert re.fullmatch(ANSWERED, session.says(ask_command("hi")))
    assert restarted.upstream.keys == [f"Bearer {KEY}"] * 2
    state = restarted.server.state
    for top in (restarted.directory("keyed"), *(path for path in state.iterdir() if path.name != "sessions")):
        for path in [top, *top.rglob("*")]:
            assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_waited_time_survives_a_restart(restarted: Restarted) -> None:
    session, directory = restarted.sessions["waited"], restarted.directory("waited")
    assert re.search(r"7\.(50|4\d) hours left of 8", session.prompt())
    session.call("answer")
    record = restarted.record("waited")
    assert record["waited_s"] == pytest.approx(7200, abs=5)
    assert record["periods"][0] == [1.0, 9001.0]
    assert len(record["periods"]) == 2
    for waits, working_s in (([], 1800), ([Interval(1000.0, 2000.0)], 800)):
        (elapsed,) = attempt_times(restarted.attempts("waited"), session_periods(directory), waits)
        assert elapsed is not None
        assert (elapsed.wall_s, elapsed.working_s) == pytest.approx((9000, working_s), abs=60)


def answered(session: Raw, number: str, **arguments: Any) -> tuple[str, str, Any]:
    """Submit a number; return status, text and output."""
    session.says(f"echo {number} > answer.txt")
    output = session.call("answer", **arguments)["output"]
    return output["metadata"]["status"], output["blocks"][0]["text"], output


def test_max_attempts(restarted: Restarted, capsys: pytest.CaptureFixture[str]) -> None:
    session, name = restarted.sessions["limited"], restarted.names["limited"]
    record = restarted.record("limited")
    assert (record["attempts"], record["scored"], record["max_attempts"]) == (4, 2, 3)
    session.says("true")
    assert "up to 3 times (1 left)" in session.prompt()
    assert answered(session, "-0.5")[0] == "valid"
    status, message, output = answered(session, "-2")
    assert (status, output["finished"], output["reward"]) == ("error", False, 0.0)
    assert "Nothing was scored: all 3 attempts of this session are used up" in message
    assert main(["sessions", "list", "--json", "--state", str(restarted.server.state)]) == 0
    listed = {session["name"]: session for session in json.loads(capsys.readouterr().out)["sessions"]}
    assert listed[name]["scored"] == 3
    status, message, output = answered(session, "-2", get_final_score=True)
    assert (status, output["finished"], output["reward"]) == ("finished", True, 0.5)
    assert "Final score, the lowest of 2 valid attempts (5 in all): raw score -1 " in message
    final = {"raw": -1.0, "reward": 0.5, "aggregation": "min", "attempts": 5, "valid": 2}
    assert output["metadata"]["final"] == final
    assert restarted.record("limited")["state"] == "finished"


def test_restored_sessions_count_and_can_be_created_again(restarted: Restarted) -> None:
    others = [Raw(restarted.server, "example_quick") for _ in range(2)]
    body = {"task_spec": {"id": "example_quick"}}
    status, reply = post(restarted.server.url, "/create", body, {"X-Session-ID": "more"})
    assert (status, f"maximum of {MAX_SESSIONS} sessions" in reply["detail"]) == (429, True)
    others.pop().delete()
    others.append(Raw(restarted.server, "example_quick", sid="more"))
    session = restarted.sessions["outcome"]
    assert session.create()[0] == 200
    session.task = "example_quiet"
    assert "has the task example_quick" in session.create()[1]["detail"]
    assert session.says("cat answer.txt").endswith("-1.5\n[exit status 0]")
    for other in others:
        other.delete()


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
