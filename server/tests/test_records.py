"""Transcripts, retention and ``re-bench sessions``, from files alone."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from server_process import re_bench, until

from re_bench_server.session_record import SessionRecord, utc
from re_bench_server.state_dir import StateDirectory, is_served
from re_bench_server.transcripts import Transcript, read_transcript

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


APPENDING = """
import sys
from pathlib import Path
from re_bench_server.transcripts import Transcript
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


def make_session(state: Path, name: str, *, ended_days: float | None = None, **fields: Any) -> Path:
    directory = state / "sessions" / name
    directory.mkdir(parents=True)
    record = SessionRecord(name, "a_task", "cpu", client="", opened=utc(), state="finished")
    if ended_days is not None:
        ended = dt.datetime.now(dt.UTC) - dt.timedelta(days=ended_days)
        record.state, record.ended = "ended", ended.isoformat(timespec="seconds")
    replace(record, **fields).save(directory)
    (directory / "attempts.jsonl.submissions").mkdir()
    return directory


def test_ended_sessions_are_removed_by_age(tmp_path: Path) -> None:
    for days in (1, 9):
        make_session(tmp_path, f"ended-{days}", ended_days=days)
    make_session(tmp_path, "suspended")
    make_session(tmp_path, "in-use", ended_days=100)
    (make_session(tmp_path, "damaged") / "session.json").write_text("{half")
    state = StateDirectory(tmp_path)
    assert state.remove_ended(8, ["in-use"]) == ["ended-9"]
    assert sorted(path.name for path in state.sessions.iterdir()) == ["damaged", "ended-1", "in-use", "suspended"]
    assert is_served(tmp_path)
    state.close()
    assert not is_served(tmp_path)


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        ("2026", "the beginning of several sessions' names"),
        ("x", "the name of no session"),
        ("20261122T010101-a", "has ended already"),  # a whole name, and the beginning of others
    ],
)
def test_end_needs_the_beginning_of_one_open_session(tmp_path: Path, session: str, reason: str) -> None:
    for name in ("20261122T010101-aa", "20261122T010101-ab", "20261122T010101-a"):
        make_session(tmp_path, name, ended_days=1)
    done = re_bench("sessions", "end", session, "--state", str(tmp_path))
    assert (done.returncode, reason in done.stderr) == (2, True)


def test_a_list_survives_damage_and_control_characters(tmp_path: Path) -> None:
    make_session(tmp_path, "one", task="\x1b]0;title\x07")
    (make_session(tmp_path, "two") / "session.json").write_text("{half")
    done = re_bench("sessions", "list", "--state", str(tmp_path))
    assert done.returncode == 0
    assert all(character.isprintable() or character == "\n" for character in done.stdout)
    assert ("one" in done.stdout, "two" in done.stdout) == (True, True)
    nowhere = re_bench("sessions", "list", "--state", str(tmp_path / "nowhere"))
    assert (nowhere.returncode, "no server has kept sessions there" in nowhere.stderr) == (2, True)
