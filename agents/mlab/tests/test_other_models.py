"""The fast model, the edit model, and unknown prices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from mlab_agent.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration

EDIT = {"filename": "train.py", "edit_instruction": "set RATE to 2", "save_filename": "train.py"}


def serve(prompt: str) -> str:
    markers = re.findall(r"^(EDIT-\w+) END$", prompt, re.MULTILINE)
    return f"{markers[-1]} WHOLE\nRATE = 2\n{markers[-1]} DONE" if markers else "The rate is 0.1."


def test_fast_and_edit_models(agents: Agents, say: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    understand = say("Understand File", {"filename": "train.py", "query": "rates"})
    agents.model.replies = [say("Edit Script", EDIT), understand, say("Final Answer", {"final_answer": "x"})]
    agents.model.serve = serve
    models = ["--edit-model", "editor", "--edit-price", "1000,1000", "--fast-model", "quick", "--fast-price", "2,2"]
    done = agents.finish("--price", "1,1", *models, "--edit-max-output-tokens", "700", "--max-cost", "50")
    assert done.returncode == 0, done.stderr
    assert (agents.workspace / "train.py").read_text() == "RATE = 2\n"
    edit = next(request for request in agents.server.requests if request["model"] == "editor")
    assert edit["max_completion_tokens"] == 700
    asked = {event["purpose"]: event["model"] for event in agents.events("reply")}
    assert asked == {"step": "scripted", "edit script": "editor", "understand file": "quick"}
    spent = {event["model"]: event["dollars"] for event in agents.events("reply")}
    assert spent["editor"] > 50 * spent["scripted"]
    left = re.search(r"\$(\d+\.\d+) of \$50", agents.observations()[0])
    assert left
    assert float(left[1]) == pytest.approx(50 - spent["editor"], abs=0.05)
    assert main(["show", str(agents.run)]) == 0
    shown = capsys.readouterr().out
    assert "Asked editor (edit script)" in shown
    assert re.search(r"^  editor: \d+ tokens, \$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--edit-price", "1,2"], "give --edit-model NAME"),
        (["--edit-model", "e", "--price", "1,1", "--max-cost", "1"], "give --edit-price IN,OUT"),
        (["--fast-model", "f", "--price", "1,1", "--max-cost", "1"], "give --fast-price IN,OUT"),
        (["--key-variable", "UNSET"], "set UNSET"),
    ],
)
def test_missing_options_are_usage_errors(agents: Agents, given: list[str], message: str) -> None:
    done = agents.finish(*given)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_cost_is_not_zero(agents: Agents, say: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
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
    assert agents.finish("--max-cost", "9", resume=True).returncode == 2  # the price is unknown
    done = agents.finish("--max-steps", "5", "--max-cost", "9", "--price", "1,1", resume=True)
    assert done.returncode == 0, done.stderr
    assert "(without 2 calls of unknown cost)" in agents.observations()[1]
    assert "and the unknown cost of 2 of 4 calls" in done.stderr
