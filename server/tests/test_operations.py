"""Transcripts, ``re-bench sessions``, costs and metrics of a running server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from example_tasks import EXAMPLES
from prometheus_client.parser import text_string_to_metric_families
from server_process import Raw, Server, re_bench, serving, until

from re_bench.cli.main import main
from re_bench.data.jsonl import read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

TOKEN = "a-token-of-the-server-0123456789"  # noqa: S105 - of a server that ends with the test
ASK = """python3 -c '
import openai
client = openai.OpenAI()
message = {"role": "user", "content": "say hi"}
client.chat.completions.create(model="gpt-3.5-turbo-0125", messages=[message], max_tokens=10)
'; echo key $OPENAI_API_KEY
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("watched")
    (place / "token").write_text(TOKEN)
    (place / "token").chmod(0o600)
    with serving(place, site, "--token-file", str(place / "token"), tasks=EXAMPLES) as running:
        yield running


def session_at(server: Server, task: str) -> tuple[Raw, Path]:
    """Return a new session and its directory."""
    before = set(server.sessions())
    session = Raw(server, task, **{"X-API-Key": TOKEN})
    (directory,) = until(lambda: set(server.sessions()) - before)
    session.call("bash", command="true")  # waits for the workspace
    return session, directory


def as_json(capsys: pytest.CaptureFixture[str], state: Path, *arguments: str) -> dict[str, Any]:
    assert main(["sessions", *arguments, "--state", str(state), "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def metrics(server: Server) -> dict[tuple[str, ...], float]:
    """Return the samples by name and label values, in the order of the label names."""
    request = urllib.request.Request(f"{server.url}/metrics", headers={"X-API-Key": TOKEN})  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [one for family in families for one in family.samples]
    return {(one.name, *(one.labels[name] for name in sorted(one.labels))): one.value for one in samples}


def test_transcript_of_a_session(watched: Server) -> None:
    session, directory = session_at(watched, "example_quick")
    ran = session.call("bash", command="echo out; echo err >&2; exit 3", timeout=20)["output"]
    session.call("bash", command=f"echo -1 > answer.txt; echo {TOKEN}")
    scored = session.call("answer")["output"]
    entries, _incomplete = read_objects(directory / "transcript.jsonl")
    assert [(one["kind"], one["seq"]) for one in entries] == [("begin", 0), *[("call", n) for n in (1, 2, 3, 4)]]
    assert entries[0]["prompt"].startswith("# quick")
    assert "You have 8 hours" in entries[0]["prompt"]
    assert (entries[0]["version"], entries[0]["task"], entries[0]["profile"]) == (1, "example_quick", "cpu")
    assert entries[0]["settings"]["limits"]["output_kib"] == 32
    call = entries[2]
    assert call["arguments"] == {"command": "echo out; echo err >&2; exit 3", "timeout": 20}
    assert (call["output"], call["metadata"]) == (ran["blocks"][0]["text"], ran["metadata"])
    assert call["metadata"]["exit_status"] == 3
    assert 0 < call["metadata"]["seconds"] <= call["seconds"] + 0.01  # both are rounded
    assert 0 < call["hours_used"] < 1
    assert "[redacted]" in entries[3]["output"]
    assert TOKEN not in (directory / "transcript.jsonl").read_text()
    answer = entries[4]
    assert (answer["tool"], answer["reward"], answer["finished"]) == ("answer", 0.5, False)
    assert answer["metadata"] == scored["metadata"]
    assert (answer["metadata"]["raw"], answer["metadata"]["attempt"]) == (-1.0, 1)
    session.delete()
    (last,) = until(lambda: read_objects(directory / "transcript.jsonl")[0][5:])
    assert (last["kind"], last["attempts"]) == ("end", 1)


def test_sessions_list_and_end(watched: Server, capsys: pytest.CaptureFixture[str]) -> None:
    session, directory = session_at(watched, "example_quick")
    session.call("bash", command="seq 100; echo -1 > answer.txt")
    session.call("answer")
    name = directory.name
    listed = {one["name"]: one for one in as_json(capsys, watched.state, "list")["sessions"]}
    ours = listed[name]
    assert (ours["task"], ours["state"], ours["attempts"], ours["best_reward"]) == ("example_quick", "open", 1, 0.5)
    ended = as_json(capsys, watched.state, "end", name)
    assert (ended["session"], ended["final"]["raw"], ended["final"]["reward"]) == (name, -1.0, 0.5)
    ended_output = session.call("bash", command="echo more")["output"]
    assert "The session has ended: ended by the operator." in ended_output["blocks"][0]["text"]
    assert (ended_output["finished"], ended_output["reward"], ended_output["metadata"]["final"]["raw"]) == (
        True,
        0.5,
        -1.0,
    )
    record = json.loads((directory / "session.json").read_text())
    assert (record["reason"], record["final"]["reward"]) == ("ended by the operator", 0.5)
    assert not (directory / "workspace").exists()
    again = re_bench("sessions", "end", name, "--state", str(watched.state))
    assert (again.returncode, "has already ended" in again.stderr) == (2, True)
    session.delete()


def test_model_cost_is_reported(watched: Server, capsys: pytest.CaptureFixture[str]) -> None:
    before = metrics(watched).get(("re_bench_model_dollars_total", "session", "example_equipped"), 0.0)
    session, directory = session_at(watched, "example_equipped")
    ran = session.call("bash", command=ASK)["output"]
    dollars = ran["metadata"]["model_dollars"]
    assert 0 < dollars < 0.001
    token = ran["blocks"][0]["text"].split()[1]
    session.call("answer")
    (ours,) = [one for one in watched.get("/health", {"X-API-Key": TOKEN})["sessions"] if one["name"] == directory.name]
    assert (ours["model_dollars"], ours["scoring_model_dollars"]) == (dollars, None)
    after = metrics(watched)["re_bench_model_dollars_total", "session", "example_equipped"]
    assert after - before == pytest.approx(dollars)
    session.delete()
    assert json.loads((directory / "session.json").read_text())["model_dollars"] == dollars
    listed = {one["name"]: one for one in as_json(capsys, watched.state, "list")["sessions"]}
    assert (listed[directory.name]["model_dollars"], listed[directory.name]["state"]) == (dollars, "ended")
    transcript = (directory / "transcript.jsonl").read_text()
    assert f'"model_dollars":{dollars}' in transcript
    assert "key [redacted]" in transcript
    assert token not in transcript


def test_metrics(watched: Server) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        watched.get("/metrics")
    before = metrics(watched)
    session, _directory = session_at(watched, "example_quick")
    session.call("bash", command="exit 3")
    session.call("bash", command="sleep 5", timeout=0.2)
    session.call("answer")
    after = metrics(watched)
    task = "example_quick"

    def grown(*sample: str) -> float:
        return after[sample] - before.get(sample, 0.0)

    for status in ("ok", "failed", "timed_out"):
        assert grown("re_bench_commands_total", status, task) == 1
    assert grown("re_bench_answers_total", "valid", task) == 1
    assert grown("re_bench_command_duration_seconds_count", task) == 3
    assert grown("re_bench_command_duration_seconds_sum", task) > 0.2
    assert grown("re_bench_scoring_duration_seconds_count", task) == 1
    assert grown("re_bench_queue_wait_seconds_count", "scoring") == 1
    assert grown("re_bench_session_setup_seconds_count", task) == 1
    assert after["re_bench_sessions", "idle", task] == 1
    assert after["re_bench_scorings", "all", "running"] == 0
    assert after["process_resident_memory_bytes",] > 1e7
    assert [sample for sample in after if sample[0] == "re_bench_build_info"]
    session.delete()
    assert ("re_bench_sessions", "idle", task) not in metrics(watched)
