"""The attempts of a session are bounded; those that fail by a fault of ours do not count, and a restart gives none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from server_process import Raw, serving

from re_bench.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def answered(session: Raw, number: str, **arguments: Any) -> tuple[str, str, Any]:
    """Hand a number in; return the status, the text and the whole output."""
    session.call("bash", command=f"echo {number} > answer.txt")
    output = session.call("answer", **arguments)["output"]
    return output["metadata"]["status"], output["blocks"][0]["text"], output


def test_attempts_are_used_up_also_over_a_restart(
    tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--max-attempts", "3")
    with serving(tmp_path, site, *options) as server:
        session = Raw(server, "example_quick")
        assert "up to 3 times; you are told" in session.prompt()
        assert [answered(session, number)[0] for number in ("-1", "crash", "leave", "none")] == [
            "valid", "error", "error", "invalid",
        ]  # fmt: skip
        (record,) = server.records().values()
        assert (record["attempts"], record["scored"], record["max_attempts"]) == (4, 2, 3)
    with serving(tmp_path, site, *options) as server:
        session.server = server
        session.call("bash", command="true")
        assert "up to 3 times, of which 1 are left" in session.prompt()
        assert answered(session, "-0.5")[0] == "valid"
        (name,) = server.records()
        status, told, output = answered(session, "-2")
        assert (status, output["finished"], output["reward"]) == ("error", False, 0.0)
        assert "Nothing was scored: all 3 attempts of this session are used up" in told
        assert main(["sessions", "list", "--json", "--state", str(server.state)]) == 0
        assert json.loads(capsys.readouterr().out)["sessions"][0]["scored"] == 3
        status, told, output = answered(session, "-2", get_final_score=True)
        assert (status, output["finished"], output["reward"]) == ("finished", True, 0.5)
        assert "Final score, the lowest of 2 valid attempts (5 in all): raw score -1 " in told
        assert output["metadata"]["final"] == {
            "raw": -1.0, "reward": 0.5, "aggregation": "min", "attempts": 5, "valid": 2,
        }  # fmt: skip
        assert server.records()[name]["state"] == "finished"
