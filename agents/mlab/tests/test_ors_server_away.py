"""An ORS server that does not answer, and an agent that is killed: no call is carried out twice."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from mlab_agent.clock import Clock, Waits
from mlab_agent.run import Run, settings_of
from mlab_agent.trace_view import one_line
from mlab_agent.workspaces.files import WorkspaceError, WorkspaceLostError
from mlab_agent.workspaces.ors import OrsWorkspace
from mlab_agent.workspaces.ors_session import OrsSession

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from agents.mlab.tests.conftest import AgentAtServer, Relay

pytestmark = pytest.mark.integration

TASK = "example_quick"


def once(condition: Callable[[dict[str, Any], bytes], bool]) -> Callable[[dict[str, Any], bytes], bool]:
    """Return a condition that holds at most once."""
    held: list[bytes] = []

    def first(call: dict[str, Any], line: bytes) -> bool:
        if not held and condition(call, line):
            held.append(line)
            return True
        return False

    return first


def interrupt(_event: dict[str, Any]) -> None:
    raise KeyboardInterrupt


def is_answer(call: dict[str, Any]) -> bool:
    return bool(call["name"] == "answer")


def absences_s(waits: Path) -> float:
    """Return how long a server was away."""
    lines = [json.loads(line) for line in waits.read_text().splitlines()]
    assert {wait["reason"] for wait in lines} == {"ORS server: it does not answer"}
    return float(sum(wait["ended"] - wait["began"] for wait in lines))


def kill_at_the_answer(relay: Relay, agent: subprocess.Popen[str]) -> str:
    """Kill an agent just before it gets the result of ``answer``; return what it wrote to stderr."""

    def killing(call: dict[str, Any], line: bytes) -> bool:
        kill = is_answer(call) and line.startswith(b"event: end")
        if kill:
            agent.kill()
        return kill

    relay.lose = once(killing)
    with agent:
        _out, err = agent.communicate(timeout=60)
    assert agent.returncode == -signal.SIGKILL, err
    return err


class Absence(threading.Thread):
    """An absence that begins some time after a script, which ends in it, and that ends when a client waits."""

    def __init__(self, relay: Relay, state: Path, said: list[str]) -> None:
        super().__init__(daemon=True)
        self.relay, self.state, self.said = relay, state, said
        self.began = 0.0

    def run(self) -> None:
        while not (begun := list(self.state.glob("sessions/*/workspace/runs.txt"))):
            time.sleep(0.01)
        time.sleep(0.5)
        self.relay.lose = lambda _call, _line: True
        self.began = time.monotonic()
        self.relay.shutdown()
        self.relay.server_close()
        while not self.said:
            time.sleep(0.01)
        begun[0].with_name("go").touch()
        time.sleep(1)
        self.relay = type(self.relay)(self.relay.target, self.relay.server_port).__enter__()


def test_broken_connections(ors_state: Path, relay: Relay, tmp_path: Path) -> None:
    said: list[str] = []
    before = time.monotonic()
    clock, waits, began = Clock(), tmp_path / "waits", time.monotonic()
    ours = Waits(clock, [waits])
    session = OrsSession(relay.url, TASK, state=tmp_path, wait_s=60, report=said.append, waits=ours)
    workspace = OrsWorkspace(session, state=tmp_path)

    # files are handled again
    relay.lose = once(lambda call, line: "a.txt" in call["input"].get("command", "") and bool(line))
    workspace.write("a.txt", "whole\n")
    assert workspace.read("a.txt") == "whole\n"

    # an answer whose outcome is not known is not asked for again
    relay.lose = once(lambda call, _line: is_answer(call))  # before the server's id of the call has come
    with pytest.raises(WorkspaceError, match="whether it was carried out is unknown"):
        workspace.score()
    assert relay.names().count("answer") == 1
    assert "not requested again" in (workspace.interrupted_score() or "")
    workspace.step = "another"
    assert workspace.interrupted_score() is None
    relay.lose = once(lambda call, line: is_answer(call) and line.startswith(b"event: end"))
    assert "Attempt 1: valid" in (workspace.score() or "")
    first, second = [call for call in relay.calls if is_answer(call)][1:]
    assert "task_id" not in first
    assert second["task_id"]

    # a script that runs while the server is away runs once, and the wait begins with the absence, not with the call
    workspace.write("slow.sh", "echo run >> runs.txt; until [ -e go ]; do sleep 0.1; done; echo done\n")
    relay.calls.clear()
    earlier_s = absences_s(waits) if waits.exists() else 0.0
    absence = Absence(relay, ors_state, said)
    absence.start()
    done = workspace.execute("slow.sh", [], 90)
    returned = time.monotonic()
    absence.join()
    assert (done.stdout, done.status) == ("done\n", 0)
    assert workspace.read("runs.txt") == "run\n"
    assert "does not answer; waiting up to 60 s" in said[0]
    assert "answers again" in said[1]
    now, worked_s, after = time.monotonic(), clock(), time.monotonic()
    waited_s, rounding = absences_s(waits), 0.01
    assert 0.5 < waited_s - earlier_s <= returned - absence.began + rounding  # the client itself has tried again before
    assert now - began - waited_s - rounding <= worked_s <= after - before - waited_s + 0.4
    workspace.finish("done")
    assert workspace.finished
    workspace.close()
    absence.relay.__exit__()


def test_wait_for_an_absent_server_is_limited(relay: Relay, tmp_path: Path) -> None:
    workspace = OrsWorkspace(OrsSession(relay.url, TASK, state=tmp_path, wait_s=1), state=tmp_path)
    relay.shutdown()
    relay.server_close()
    began = time.monotonic()
    with pytest.raises(WorkspaceLostError, match="does not answer"):
        workspace.read("notes.md")
    assert time.monotonic() - began >= 0.5
    workspace.close()
    assert (tmp_path / "home" / "session.json").stat().st_mode & 0o777 == 0o600
    again = OrsSession(relay.target, TASK, state=tmp_path)  # the same server, at another address
    assert again.joined
    again.close()


def test_second_signal_ends_the_wait_for_a_server(
    relay: Relay, agent_at: Callable[[str], AgentAtServer], say: Callable[..., str]
) -> None:
    def go_away() -> str:
        relay.shutdown()
        relay.server_close()
        return say("List Files", {})

    with agent_at(relay.url) as agent:
        agent.replies = [go_away]
        with agent.start("--server-wait", "30s") as process:
            while not agent.events("server"):
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert process.poll() is None  # the answer is to be handed in
            process.send_signal(signal.SIGINT)
            _out, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "Traceback" not in err
        assert (agent.run / "home" / "session.json").exists()


def test_resume_after_kill_during_a_score(
    relay: Relay, agent_at: Callable[[str], AgentAtServer], say: Callable[..., str]
) -> None:
    lines: list[str | None] = []

    with agent_at(relay.url) as agent:

        def resumed() -> Run:
            def watch(event: dict[str, Any]) -> None:
                lines.append(one_line(event, 0))

            return Run(settings_of(agent.run), agent.run, resume=True, watch=watch)

        def do_steps(run: Run, number: int) -> None:
            """Take some steps, and leave the session as a killed process leaves it."""
            run.agent.prepare()
            for _step in range(number):
                run.agent.execute(run.agent.get_response())
            run.agent.workspace.left_open = True

        agent.replies = [say("Write File", {"filename": "a.txt", "content": "a"}), say("Score", {})]
        kill_at_the_answer(relay, agent.start())

        # a resume that fails, before or after it has joined the session, leaves it as it is
        assert "give --price" in agent.finish("--max-cost", "1", resume=True).stderr
        with pytest.raises(KeyboardInterrupt):
            Run(settings_of(agent.run), agent.run, resume=True, watch=interrupt)

        agent.replies = [say("Write File", {"filename": "b.txt", "content": "b"})]
        with resumed() as run:
            do_steps(run, 1)
        assert "resumed, in the same session of the server" in str(lines)
        assert "Attempt 1: valid" in agent.observation(1)
        assert relay.names().count("answer") == 2  # the second one only asks what came of the first
        assert len(agent.events("reward")) == 1

        agent.replies = [say("Score", {})]
        with resumed() as run:
            do_steps(run, 1)
        assert "Attempt 2: valid" in agent.observation(3)

        headers = {"X-Session-ID": json.loads((agent.run / "home" / "session.json").read_text())["sid"]}
        request = urllib.request.Request(f"{relay.target}/delete", b"{}", headers)  # noqa: S310 - http
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - http
        agent.replies = [say("List Files", {}), say("Final Answer", {"final_answer": "x"})]
        lines.append(kill_at_the_answer(relay, agent.start(resume=True)))
        with resumed() as run:  # the episode has ended on the server
            assert run.run().answer == "x"
        ends = [(end["reason"], bool(end["final"])) for end in agent.events("end")]
        assert (ends, len(agent.events("reward"))) == ([("final answer", True)], 3)
        assert "resumed, in a new session with the files" in str(lines)
        assert "a.txt" in agent.observation(4)
