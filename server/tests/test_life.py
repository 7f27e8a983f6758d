"""Why a server does not start, and ``/health``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from server_process import Raw, Server, re_bench, serving

from re_bench.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_long_directory_for_temporary_files(tmp_path: Path, site: Path) -> None:
    (tmp_path / ("x" * 120)).mkdir()
    tasks = ("example_equipped",)  # with the sockets of a meter and a gateway
    with serving(tmp_path, site, tasks=tasks, TMPDIR=str(tmp_path / ("x" * 120))) as server:
        session = Raw(server, "example_equipped")
        found = session.call("bash", command="echo -1 > answer.txt; ls $RE_BENCH_EXPERIMENTS && ls")
        assert found["output"]["metadata"]["exit_status"] == 0
        assert "notes.md" in str(found)
        assert "metered" not in str(found)  # only the meter has it
        assert session.call("answer")["output"]["reward"] == 0.5
        session.delete()


def test_state_directory_is_exclusive(server: Server) -> None:
    done = re_bench("serve", "--port", "0", "--profile", "cpu", "--state", str(server.state))
    assert (done.returncode, "in use by another server" in done.stderr) == (2, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])  # noqa: S104 - they are refused
def test_public_address_needs_a_token_or_insecure(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "add --token-file FILE, or --insecure" in refusal(capsys, "--host", host, "--state", str(tmp_path))


@pytest.mark.parametrize("text", ["", "a b"])
def test_malformed_token_file_is_rejected(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    refused = refusal(capsys, "--token-file", str(file), "--state", str(tmp_path / "state"))
    assert "expected one line with a token" in refused


def refusal(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return what ``re-bench serve`` prints when it refuses options."""
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--port", "0", *options])
    assert caught.value.code == 2
    return capsys.readouterr().err


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
