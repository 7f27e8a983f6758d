"""Test agent kinds, including those of installed packages."""

from __future__ import annotations

import importlib
import signal
from typing import TYPE_CHECKING

import pytest

from re_bench.errors import UsageError
from re_bench.records import SERVER, RunRecord
from re_bench_evaluation.agents import AgentLaunch, Usage, agent_environment, kind_named
from re_bench_evaluation.check import check
from re_bench_evaluation.plan import Plan, load_plan
from re_bench_evaluation.run import can_resume

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIND = """
import signal
from re_bench_evaluation.agents import AgentKind

class Paper(AgentKind):
    needs_model = True
    suspend_signal = signal.SIGUSR2

    def missing(self, setup):
        yield f"agents.{setup.name}: no pen for {setup.model_name}"

    def argv(self, launch, *, resume):
        return ["paper", *launch.setup.agent.options, launch.task_id, "again" if resume else "new"]

    def environment(self, launch):
        return {"PAPER": str(launch.seed)}

    def can_resume(self, directory, usage):
        return (directory / "page").exists()
"""
PLAN = """
profile = "cpu"
tasks = ["quick"]
runs = 1
[models.a]
name = "big-a"
key_variable = "KEY_OF_A"
[models.b]
key_variable = "KEY_OF_B"
[agents.writer]
kind = "paper"
options = ["--ink"]
models = ["a"]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a distribution with the kind ``paper``, and one with a kind that cannot be imported."""
    site = tmp_path / "site"
    about = site / "paper-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: paper\nVersion: 1\n")
    entries = "[re_bench.agents]\npaper = paper_kind:Paper\nbroken = no_such_module:Kind\ncommand = paper_kind:Paper\n"
    (about / "entry_points.txt").write_text(entries)
    (site / "paper_kind.py").write_text(KIND)
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
    kind_named.cache_clear()
    yield site
    kind_named.cache_clear()


def plan_of(tmp_path: Path, text: str = PLAN) -> Plan:
    (tmp_path / "plan.toml").write_text(text)
    return load_plan(tmp_path / "plan.toml")


def launch_of(plan: Plan, run: Path) -> AgentLaunch:
    return AgentLaunch(plan.setup_of("writer", "a", run), "ai_rd_quick", 3, run, "http://server", "token", None)


@pytest.mark.integration
@pytest.mark.usefixtures("site")
def test_installed_kind_starts_with_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEY_OF_A", "KEY_OF_B"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("NO_PROXY", "example.org")
    plan = plan_of(tmp_path)
    kind, launch = plan.kind_of("writer"), launch_of(plan, tmp_path)
    assert plan.kinds == (kind,)
    assert kind.suspend_signal == signal.SIGUSR2
    assert kind.argv(launch, resume=True) == ["paper", "--ink", "ai_rd_quick", "again"]
    environment = agent_environment(kind, launch, plan.key_variables)
    assert (environment["PAPER"], environment["RE_BENCH_MODEL"], environment["RE_BENCH_STEPS"]) == ("3", "big-a", "")
    assert environment["KEY_OF_A"] == "secret"
    assert environment["NO_PROXY"] == "example.org,localhost,127.0.0.1,::1"
    assert "KEY_OF_B" not in environment
    with pytest.raises(UsageError, match=r"agents\.writer: no pen for big-a"):
        check(plan, tmp_path, [])


@pytest.mark.usefixtures("site")
def test_resume_requires_agent_support_and_server_state(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    record = RunRecord(run="r", agent="writer", model="a", task="quick", task_id="q", profile="cpu", seed=0)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "page").touch()
    assert not can_resume(tmp_path, record, plan)
    (tmp_path / SERVER).mkdir()
    assert can_resume(tmp_path, record, plan)
    (tmp_path / "agent" / "page").unlink()
    assert not can_resume(tmp_path, record, plan)


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"paper"', '"papyrus"', "agents.writer.kind: unknown agent kind 'papyrus'; known: command, broken, "),
        ('"paper"', '"broken"', "agents.writer.kind: agent kind 'broken' cannot be imported: No module named "),
        ('models = ["a"]', "models = []", "agents.writer.models: required for kind paper"),
        ('models = ["a"]', 'command = ["a"]', "agents.writer.command: not allowed for kind paper"),
        ('"paper"', '"command"', "agents.writer.command: required for kind command"),  # not the package's
    ],
)
def test_invalid_agent_tables(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(UsageError) as error:
        plan_of(tmp_path, PLAN.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'plan.toml'}: {problem}")


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("status", "reason", "opened", "end"),
    [
        (0, None, True, ("ended", "finished")),
        (0, "steps", True, ("ended", "steps")),
        (3, None, True, ("ended", "exit status 3: bye")),
        (75, "steps", True, ("failed", "agent requested a retry (exit status 75): bye")),
        (0, "steps", False, ("failed", "agent exited with status 0 without opening a session: bye")),
        (None, "steps", True, ("ended", "steps")),
        (None, None, True, ("failed", "the evaluation was killed")),
    ],
)
def test_exit_of_agent(status: int | None, reason: str | None, opened: bool, end: tuple[str, str]) -> None:
    ended = kind_named("paper").ended(Usage(reason=reason), status, "bye", opened=opened)
    assert (ended.kind, ended.reason) == end
    assert ended == kind_named("command").ended(Usage(reason=reason), status, "bye", opened=opened)
