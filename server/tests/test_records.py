"""Transcripts, retention and the view of sessions, from files alone."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from server_process import until

from re_bench.errors import UsageError
from re_bench_server.operator_socket import OperatorSocket, ask, is_served
from re_bench_server.records.retention import remove_old
from re_bench_server.records.session_files import SessionFiles, all_sessions, session_called
from re_bench_server.records.session_tables import describe_session, printable
from re_bench_server.records.transcripts import Transcript, last_entries, read_transcript

if TYPE_CHECKING:
    from pathlib import Path

KEY = "key-of-a-client-4711"


def call(command: str, output: str = "") -> dict[str, Any]:
    metadata = {"exit_status": 0, "timed_out": False, "seconds": 0.1}
    return {"kind": "call", "tool": "bash", "arguments": {"command": command}, "output": output, "metadata": metadata}


def test_a_transcript_keeps_less_and_then_nothing_when_its_space_is_used(tmp_path: Path) -> None:
    path, limit = tmp_path / "transcript.jsonl", 100_000
    transcript = Transcript(path, limit)
    for number in range(300):
        transcript.append(call(f"echo {number}", "x" * 5000), ())
    assert path.stat().st_size < limit + 200
    entries = read_transcript(path).entries
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    marks = [(entry["seq"], entry["from_here"]) for entry in entries if entry["kind"] == "limit"]
    assert [kept for _seq, kept in marks] == ["brief", "nothing"]
    assert entries[-1]["kind"] == "limit"
    whole, brief = entries[: marks[0][0]], entries[marks[0][0] + 1 : -1]
    assert {len(entry["output"]) for entry in whole} == {5000}
    assert {(len(entry["output"]), entry["cut"]["output"]) for entry in brief} == {(1000, 5000)}
    assert brief[0]["arguments"]["command"] == f"echo {len(whole)}"  # none is missing between
    Transcript(path, limit).append(call("later"), ())
    assert read_transcript(path).entries == entries


def test_after_a_torn_line_a_transcript_goes_on_with_the_next_number(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    first = Transcript(path, 1 << 20)
    for number in range(3):
        first.append(call(f"echo {number}"), ())
    whole = path.read_bytes()
    for end in range(whole.rindex(b"{", 0, -2), len(whole)):
        path.write_bytes(whole[:end])
        Transcript(path, 1 << 20).append(call("next"), ())
        contents = read_transcript(path)
        numbers = [entry["seq"] for entry in contents.entries]
        assert numbers == sorted(set(numbers))
        assert contents.entries[-1]["arguments"]["command"] == "next"
        assert last_entries(path, 1) == contents.entries[-1:]


APPENDING = """
import sys
from pathlib import Path
from re_bench_server.records.transcripts import Transcript
transcript = Transcript(Path(sys.argv[1]), 1 << 30)
print("ready", flush=True)
for number in range(1_000_000):
    transcript.append({"kind": "call", "output": "x" * 100_000}, ())
"""


def test_a_kill_in_the_middle_of_a_line_loses_no_other(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with subprocess.Popen([sys.executable, "-c", APPENDING, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        until(lambda: path.exists() and path.stat().st_size > 2_000_000)
        process.send_signal(signal.SIGKILL)
    contents = read_transcript(path)
    assert [entry["seq"] for entry in contents.entries] == list(range(len(contents.entries)))
    assert len(contents.entries) > 10
    assert contents.torn <= 1


def test_secrets_are_in_no_field(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    entry = call(f"echo {KEY} 'sk-live-0123456789'", f"OPENAI_API_KEY=rb-token-of-the-gateway\n{KEY}")
    entry["metadata"] = {"list": [KEY], "nested": {"message": f"with {KEY}"}}
    Transcript(path, 1 << 20).append(entry, (KEY, "rb-token-of-the-gateway"))
    written = path.read_text()
    assert not [secret for secret in (KEY, "sk-live", "rb-token") if secret in written]
    assert read_transcript(path).entries[0]["output"] == "OPENAI_API_KEY=[redacted]\n[redacted]"


def test_the_last_entries_of_a_long_transcript(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    assert last_entries(path, 3) == []
    transcript = Transcript(path, 1 << 30)
    for number in range(20):
        transcript.append(call(f"echo {number}", "\x1b" * 30_000), ())  # six bytes each
    assert [entry["seq"] for entry in last_entries(path, 3)] == [17, 18, 19]
    assert len(last_entries(path, 100)) == 20
    assert last_entries(path, 100) == read_transcript(path).entries


def make_session(state: Path, name: str, *, ended_days: float | None = None, kib: int = 4, **record: Any) -> Path:
    directory = state / "sessions" / name
    directory.mkdir(parents=True)
    if ended_days is not None:
        record["ended"] = (dt.datetime.now(dt.UTC) - dt.timedelta(days=ended_days)).isoformat(timespec="seconds")
    (directory / "session.json").write_text(json.dumps({"name": name, "task": "a_task", "profile": "cpu"} | record))
    (directory / "attempts.jsonl.submissions").mkdir()
    (directory / "attempts.jsonl.submissions" / "copy").write_bytes(os.urandom(kib << 10))
    return directory


def test_ended_sessions_are_removed_by_age_and_by_size_the_oldest_first(tmp_path: Path) -> None:
    for days in (1, 5, 9):
        make_session(tmp_path, f"ended-{days}", ended_days=days, kib=1024)
    make_session(tmp_path, "suspended", kib=4096)
    make_session(tmp_path, "in-use", ended_days=100)
    (make_session(tmp_path, "damaged", kib=4096) / "session.json").write_text("{half")
    sessions = tmp_path / "sessions"
    assert remove_old(sessions, keep_days=None, keep_gib=None) == []
    assert [one.name for one in remove_old(sessions, keep_days=8, keep_gib=None, in_use=["in-use"])] == ["ended-9"]
    removed = remove_old(sessions, keep_days=None, keep_gib=1.5 / 1024, in_use=["in-use"])
    assert [(one.name, one.size >> 20) for one in removed] == [("ended-5", 1)]
    assert sorted(path.name for path in sessions.iterdir()) == ["damaged", "ended-1", "in-use", "suspended"]


def test_a_session_that_is_removed_while_it_is_read_is_no_error(tmp_path: Path) -> None:
    directory = make_session(tmp_path, "one", ended_days=1)
    session = SessionFiles(directory)
    remove_old(tmp_path / "sessions", keep_days=0.5, keep_gib=None)
    assert not directory.exists()
    summary = session.summary(served=False)
    assert (summary.attempts, summary.task, session.calls(5)) == (0, None, [])


def test_sessions_are_named_by_a_beginning_that_only_one_has(tmp_path: Path) -> None:
    for name in ("20261122T010101-aa", "20261122T010101-ab", "20261122T010101-a"):
        make_session(tmp_path, name)
    assert session_called(tmp_path, "20261122T010101-ab").name == "20261122T010101-ab"
    assert session_called(tmp_path, "20261122T010101-a").name == "20261122T010101-a"  # a whole name
    with pytest.raises(UsageError, match="the beginning of several sessions' names"):
        session_called(tmp_path, "2026")
    with pytest.raises(UsageError, match="the name of no session"):
        session_called(tmp_path, "x")
    with pytest.raises(UsageError, match="no server has kept sessions there"):
        all_sessions(tmp_path / "nowhere")


def test_what_agents_wrote_cannot_control_a_terminal(tmp_path: Path) -> None:
    directory = make_session(tmp_path, "one", task="\x1b]0;title\x07", reason="\x9b31m")
    Transcript(directory / "transcript.jsonl", 1 << 20).append(
        {**call("printf '\x1b[2J'\nsecond", "a\r\nb\rc\x1b[31m\u202e\ud800"), "seconds": 1.0, "cut": {"output": 9}}, ()
    )
    session = SessionFiles(directory)
    shown = describe_session(session.summary(served=True), (), session.calls(1), full=True)
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "  $ second" in shown
    assert printable("tab\tline\n") == "tab\tline\n"


def test_the_operator_s_socket_is_its_owner_s_and_may_have_a_long_path(tmp_path: Path) -> None:
    state = tmp_path / ("long" * 30)
    state.mkdir()
    assert ask(state, {"do": "anything"}) is None
    asyncio.run(asking(state))
    assert list(state.iterdir()) == []


async def asking(state: Path) -> None:
    async def operate(message: Any) -> dict[str, Any]:
        if message.get("do") == "refuse":
            raise UsageError("not this")
        return {"told": message["do"]}

    server = OperatorSocket(state, operate)
    await server.open()
    assert await asyncio.to_thread(ask, state, {"do": "one"}) == {"told": "one"}
    with pytest.raises(UsageError, match="not this"):
        await asyncio.to_thread(ask, state, {"do": "refuse"})
    await asyncio.to_thread(send_garbage, state)
    assert await asyncio.to_thread(is_served, state)
    assert await asyncio.to_thread(ask, state, {"do": "two"}) == {"told": "two"}
    await server.close()
    assert not await asyncio.to_thread(is_served, state)


def send_garbage(state: Path) -> None:
    assert stat.S_IMODE((state / "operator.sock").stat().st_mode) == 0o600
    descriptor = os.open(state, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"/proc/self/fd/{descriptor}/operator.sock")
        connection.sendall(b"\xff{[\n")
        assert b"expected a line of JSON" in connection.recv(1000)
    os.close(descriptor)
