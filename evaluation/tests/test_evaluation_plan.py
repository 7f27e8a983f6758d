"""Test the validation of plans, and the changes allowed between two commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from re_bench.errors import UsageError
from re_bench_evaluation.plan import changed_keys, load_plan

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """
profile = "cpu"
tasks = ["one", "two"]
runs = 2
dollars = 20
[models.a]
price = [1, 2.5]
[models.b]
price = [1, 2.5]
base_url = "http://127.0.0.1:8000/v1"
[agents.mlab]
kind = "mlab"
models = ["a"]
[agents.mine]
kind = "command"
command = ["{plan}/agent", "--task={task}", "{{}}"]
[budget]
dollars = 2
"""


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    return tmp_path / "my plan.toml"


def problems(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_plan(path)
    return [line.removeprefix(f"{path}: ") for line in str(error.value).splitlines()]


def test_cells(plan_file: Path) -> None:
    plan_file.write_text(PLAN)
    plan = load_plan(plan_file)
    assert plan.name == "my-plan"
    assert plan.all_seeds == (0, 1)
    assert plan.cells() == [
        (agent, model, task)
        for agent, models in (("mlab", "a"), ("mine", "ab"))
        for model in models
        for task in ("one", "two")
    ]
    assert plan.run_memory_mib == 8192


def test_problems_are_listed_with_keys(plan_file: Path) -> None:
    assert problems(plan_file, "tasks = []\nseeds = [1, 1]\nagent = 3\nagents = {}\n[budget]\nhours = 0") == [
        "tasks: Tuple should have at least 1 item after validation, not 0",
        "agents: Dictionary should have at least 1 item after validation, not 0",
        "budget.hours: Input should be greater than 0",
        "agent: unknown key",
    ]
    assert problems(plan_file, PLAN.replace("http://127", "127"))[0].startswith("models.b.base_url: ")
    wrong = PLAN.replace('models = ["a"]', 'models = ["c"]\noptions = ["--max-cost=3"]').replace("{task}", "{tusk}")
    wrong = wrong.replace("[budget]\ndollars = 2", "").replace("price = [1, 2.5]\n[models.b]", "[models.b]")
    wrong = wrong.replace("runs = 2", "seeds = [1, 1]\nresources = {gpus = 1.5}")
    lines = problems(plan_file, wrong)
    assert [line.partition(": ")[0] for line in lines] == [
        "seeds[1]", "resources.gpus", "agents.mlab.options[0]", "agents.mlab.models[0]", "agents.mine.command[1]",
        "budget.dollars", "models.a.price",
    ]  # fmt: skip
    assert "unknown placeholder {tusk}; known: server, task, " in lines[4]
    assert "(did you mean task?)" in lines[4]
    assert "required with dollars (the cap on all runs)" in lines[-1]
    assert problems(plan_file, PLAN.replace('command = ["{plan}/agent", "--task={task}", "{{}}"]', "")) == [
        "agents.mine.command: required for kind command"
    ]
    assert problems(plan_file, PLAN.replace("runs = 2", ""))[0].startswith("runs: exactly one of runs and seeds")
    assert problems(plan_file, "tasks = ")[0].startswith("not TOML: ")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("runs = 2", "runs = 3", []),
        ("runs = 2", "seeds = [1, 0, 7]", []),
        ("runs = 2", "runs = 1", ["seeds"]),
        ('"two"', '"three", "two"', []),
        ('"two"', '"three"', ["tasks"]),
        ("dollars = 20", "dollars = 30", []),
        ("dollars = 20", "dollars = 10", ["dollars"]),
        ('models = ["a"]', 'models = ["a", "b"]', []),
        ('models = ["a"]', 'models = ["b"]', ["agents.mlab.models"]),
        (":8000", ":9000", []),
        ("[models.b]\nprice = [1, 2.5]", "[models.b]\nprice = [1, 3]", ["models.b.price"]),
        ("[models.b]", "[models.c]\nprice = [0, 0]\n[models.b]", []),
        ("[budget]\ndollars = 2", "[budget]\nhours = 1\ndollars = 2", ["budget.hours"]),
        ("profile =", 'server.network = "open"\nprofile =', ["server.network"]),
    ],
)
def test_allowed_changes(plan_file: Path, old: str, new: str, changed: list[str]) -> None:
    plan_file.write_text(PLAN)
    before = load_plan(plan_file).record()
    assert PLAN.count(old) == 1
    plan_file.write_text(PLAN.replace(old, new))
    assert changed_keys(before, load_plan(plan_file).record()) == changed


def test_seeds_are_bounded(plan_file: Path) -> None:
    for seed in (10**300, -(10**300), 1 << 63):
        (problem,) = problems(plan_file, PLAN.replace("runs = 2", f"seeds = [0, {seed}]"))
        assert problem.startswith("seeds[1]: Input should be ")
    plan_file.write_text(PLAN.replace("runs = 2", f"seeds = [{-(1 << 63)}, {(1 << 63) - 1}]"))
    assert len(load_plan(plan_file).all_seeds) == 2
