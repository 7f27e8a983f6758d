"""A model of its own for edits: its server, key, prices and share of the budget; and what prices nobody knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion, FakeServer

from mlab_agent.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agents.mlab.tests.conftest import Agents

EDIT_KEY = "sk-edit-9876543210"
EDIT = {"filename": "train.py", "edit_instruction": "set RATE to 2", "save_filename": "train.py"}


def edited(request: dict[str, Any]) -> str:
    marker = re.findall(r"^(EDIT-\w+) END$", request["messages"][0]["content"], re.MULTILINE)[-1]
    return f"{marker} WHOLE\nRATE = 2\n{marker} DONE"


@pytest.fixture
def editor() -> Iterator[FakeServer]:
    with FakeServer(edited) as server:
        yield server


def options(editor: FakeServer, *more: str) -> list[str]:
    return [
        *("--edit-model", "editor", "--edit-base-url", editor.url, "--edit-key-variable", "EDIT_KEY"),
        *("--edit-max-output-tokens", "700", *more),
    ]


def test_edits_have_their_own_model_server_key_and_prices(
    agents: Agents, say: Callable[..., str], key: str, editor: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    understand = say("Understand File", {"filename": "train.py", "query": "rates"})
    agents.model.replies = [say("Edit Script", EDIT), understand, say("Final Answer", {"final_answer": "x"})]
    given = options(
        editor, "--price", "1,1", "--edit-price", "1000,1000", "--fast-model", "quick", "--fast-price", "2,2"
    )
    done = agents.finish(*given, "--max-cost", "50", EDIT_KEY=EDIT_KEY)
    assert done.returncode == 0, done.stderr
    assert (agents.workspace / "train.py").read_text() == "RATE = 2\n"
    assert editor.authorizations == [f"Bearer {EDIT_KEY}"]
    assert editor.requests[0]["max_completion_tokens"] == 700
    assert set(agents.server.authorizations) == {f"Bearer {key}"}
    models = {event["purpose"]: event["model"] for event in agents.events("reply")}
    assert models == {"step": "scripted", "edit script": "editor", "understand file": "quick"}
    spent = {event["model"]: event["dollars"] for event in agents.events("reply")}
    assert spent["editor"] > 100 * spent["scripted"]
    left = re.search(r"\$(\d+\.\d+) of \$50", agents.observations()[0])
    assert left
    assert float(left[1]) == pytest.approx(50 - spent["editor"], abs=0.05)
    assert main(["show", str(agents.run)]) == 0
    shown = capsys.readouterr().out
    assert "Asked editor (edit script)" in shown
    assert re.search(r"^  editor: \d+ tokens, \$", shown, re.MULTILINE)
    for path in agents.top.rglob("*"):
        assert not path.is_file() or EDIT_KEY.encode() not in path.read_bytes()


def test_the_cap_counts_edits(agents: Agents, say: Callable[..., str], editor: FakeServer) -> None:
    agents.model.replies = [say("Edit Script", EDIT)]
    done = agents.finish(
        *options(editor, "--price", "0.01,0.01", "--edit-price", "900,900", "--max-cost", "1"), EDIT_KEY="k"
    )
    assert done.returncode == 3
    spent = sum(event["dollars"] for event in agents.events("reply"))
    assert 0.1 < spent <= 1
    assert agents.events("end")[0]["reason"] == "cost"


def test_another_server_does_not_get_the_key(agents: Agents, say: Callable[..., str], editor: FakeServer) -> None:
    agents.model.replies = [say("Edit Script", EDIT), say("Final Answer", {"final_answer": "x"})]
    assert agents.finish("--edit-model", "editor", "--edit-base-url", editor.url).returncode == 0
    assert editor.authorizations == ["Bearer none"]


def test_a_resumed_run_finds_the_keys_without_being_told(
    agents: Agents, say: Callable[..., str], editor: FakeServer
) -> None:
    agents.model.replies = [Completion(say("Edit Script", EDIT), delay_s=20), say("Edit Script", EDIT)]
    agents.kill_when(lambda: len(agents.server.requests) == 1, *options(editor), EDIT_KEY=EDIT_KEY)
    agents.model.replies = [say("Edit Script", EDIT), say("Final Answer", {"final_answer": "x"})]
    agents.model.replies_given = 0
    (agents.workspace / "look.py").write_text("")
    done = agents.finish(resume=True, EDIT_KEY=EDIT_KEY)
    assert done.returncode == 0, done.stderr
    assert editor.authorizations == [f"Bearer {EDIT_KEY}"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--edit-price", "1,2"], "need --edit-model NAME"),
        (["--edit-model", "e", "--edit-key-variable", "UNSET"], "is to come from UNSET, which the environment lacks"),
        (["--edit-model", "e", "--price", "1,1", "--max-cost", "1"], "give --edit-price IN,OUT"),
        (["--fast-model", "f", "--price", "1,1", "--max-cost", "1"], "give --fast-price IN,OUT"),
        (["--edit-model", "e", "--edit-base-url", "https://api.openai.com/v1"], "--edit-key-variable"),
    ],
)
def test_what_is_missing_is_said(agents: Agents, given: list[str], message: str) -> None:
    done = agents.finish(*given)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cost_that_is_not_known_is_not_nothing(
    agents: Agents, say: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    read = say("Read File", {"filename": "train.py"})
    agents.model.replies = [read]
    done = agents.finish("--max-steps", "1")
    assert "cost unknown" in done.stderr
    assert main(["show", str(agents.run)]) == 0
    shown = capsys.readouterr().out
    assert "cost unknown" in shown
    assert "$0.0" not in shown
    agents.model.replies = [read, say("Final Answer", {"final_answer": "x"})]
    agents.model.replies_given = 0
    assert agents.finish("--max-cost", "9", resume=True).returncode == 2  # which price?
    done = agents.finish("--max-steps", "5", "--max-cost", "9", "--price", "1,1", resume=True)
    assert done.returncode == 0, done.stderr
    assert "(without 2 calls of unknown cost)" in agents.observations()[1]
    assert "and the unknown cost of 2 of 4 calls" in done.stderr
