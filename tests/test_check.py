"""Test ``re-bench check`` by breaking one thing at a time in a copy of a real task."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from re_bench.cli.main import main
from re_bench.cli.task_commands import repository_problems
from re_bench.task.check import check_task, fix_all
from re_bench.task.check_files import Report, line_of
from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

TOP = Path(__file__).resolve().parents[1]
TASK = "small_scaling_law"
COPIED = ("README.md", "constraints.txt", ".dockerignore")
TODAY = dt.date.fromisoformat(re.findall(r"(?m)^date = (\S+)", (TOP / "tasks" / TASK / "anchors.toml").read_text())[-1])


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Return a copy of a task in a copy of this repository, mostly of links."""
    top = tmp_path / "checkout"
    (top / "tasks").mkdir(parents=True)
    for path in TOP.iterdir():
        if path.name in COPIED:
            shutil.copy(path, top)
        elif path.name == "images":
            (top / "images" / "locks").mkdir(parents=True)
            for name in ("lock.py", "locks.toml"):  # the program looks for files next to it
                shutil.copy(path / name, top / "images")
            for lock in path.glob("locks/*.txt"):
                (top / "images" / "locks" / lock.name).symlink_to(lock)
        elif path.name != "tasks" and not (path.name.startswith(".") or path.name == "__pycache__"):
            (top / path.name).symlink_to(path)
    for path in TOP.glob("tasks/*"):
        if path.name == TASK:
            ignored = shutil.ignore_patterns("__pycache__", "*.jsonl")
            shutil.copytree(path, top / "tasks" / TASK, ignore=ignored)
        else:
            (top / "tasks" / path.name).symlink_to(path)
    return top / "tasks" / TASK


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a function that replaces the first ``old`` in a file of the task, or of the repository with ../../."""

    def change(task: Path) -> None:
        text = (task / name).read_text()
        assert old in text
        (task / name).write_text(text.replace(old, new, 1))

    return change


def remove(name: str) -> Callable[[Path], None]:
    def change(task: Path) -> None:
        path = task / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def append(name: str, text: str) -> Callable[[Path], None]:
    def change(task: Path) -> None:
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        with (task / name).open("a") as file:
            file.write(text)

    return change


MANIFEST, INSTRUCTIONS, DOCKER, SCORER = "task.toml", "instructions.md", "Dockerfile", "score.py"
BREAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "toml": (replace(MANIFEST, 'unit = "', "unit = "), r"task\.toml:9: expected valid TOML"),
    "key": (replace(MANIFEST, "resolution", "resolutoin"), r"task\.toml:10: resolutoin: Extra inputs"),
    "value": (replace(MANIFEST, "memory_mib = 4096", "memory_mib = -1"), r"task\.toml:\d+: .*memory_mib.*greater"),
    "order": (replace(MANIFEST, "[meter]", "[model]\n[meter]"), r"task\.toml:\d+: model\.name: Field required"),
    "no method": (replace(SCORER, "def meter(", "def metre("), r"task\.toml:21: \[meter\] needs the method meter in"),
    "no table": (
        replace(SCORER, "    def meter(", "    def stand_in(self) -> None:\n        ...\n\n    def meter("),
        r"score\.py:\d+: the class has the method stand_in, but task\.toml has no \[model\]: add it",
    ),
    "undeclared": (
        lambda task: [replace(MANIFEST, 'instance = "chosen"\n', "")(task) for _ in range(2)],
        r"task\.toml:\d+: the task uses .*, but no profile has instance",
    ),
    "drawn": (replace(MANIFEST, '"chosen"', '"secret"'), r'task\.toml:\d+: instance = "secret", but the task does not'),
    "by hand": (
        replace("anchors.toml", "starting = 0.37", "starting =  0.37"),
        r"anchors\.toml:1: not formatted as re-bench calibrate writes it",
    ),
    "equal": (
        lambda task: (task / "anchors.toml").write_text(
            re.sub("reference = 0.9.*", "reference = 0.1", (task / "anchors.toml").read_text())
        ),
        r"anchors\.toml:\d+: profiles\.cpu\.anchors\.reference: should be above",
    ),
    "future": (
        lambda task: (task / "anchors.toml").write_text(
            re.sub(r"(?m)^date = .*", "date = 2199-01-01", (task / "anchors.toml").read_text())
        ),
        r"anchors\.toml:11: profile cpu: the anchors are from the future \(2199",
    ),
    "in manifest": (
        replace(MANIFEST, 'kind = "published"', 'kind = "measured"'),
        r"task\.toml:\d+: .*hardware: required",
    ),
    "no file": (remove(DOCKER), r"Dockerfile:1: missing: the agent's image"),
    "no reference": (remove("reference"), r"reference:1: missing: the reference solution"),
    "no grading": (remove(f"{TASK}/grading.py"), r"grading\.py:1: missing: the truth"),
    "syntax": (append("starter/train.py", "\ndef :\n"), r"starter/train\.py:\d+: invalid Python: invalid syntax"),
    "long": (
        replace(SCORER, "\n\n\nclass", "\nx = 1\n" + "\n" * 60 + "\n\n\nclass"),
        r"score\.py:80: \d+ lines",
    ),
    "docstring": (
        replace(SCORER, "raw = ", "raw: "),
        r"score\.py:1: the docstring does not define the raw score",
    ),
    "canary": (replace("README.md", "495e4cb1", "0"), r"README\.md:1: has no canary line .*--fix"),
    "canary in code": (
        replace("reference/predict.py", "495e4cb1", "0"),
        r"reference/predict\.py:1: has no canary line",
    ),
    "record": (
        replace("records.toml", 'kind = "simple"', 'kind = "simpel"'),
        r"records\.toml:\d+: records\[\d\]\.kind",
    ),
    "record's profile": (
        replace("records.toml", 'profile = "cpu", kind = "simple"', 'profile = "cpu-9", kind = "simple"'),
        r"records\.toml:\d+: task\.toml has no profile 'cpu-9'",
    ),
    "nothing": (remove("cheats/fifo/make.py"), r"cheats/fifo/cheat\.toml:1: no submission next to it"),
    "no description": (append("cheats/idle/answer.json", "{}"), r"cheats/idle:1: has no cheat\.toml"),
    "stale": (append("Dockerfile", "USER root\n"), r"Dockerfile:1: differs from its template's output"),
    "template": (
        replace("instructions.md.j2", "constants.MIN_SHARE", "constants.MIN"),
        r"instructions\.md\.j2:1: .*MIN",
    ),
    "few": (
        lambda task: [remove(f"cheats/{path.name}")(task) for path in sorted((task / "cheats").iterdir())[1:]],
        r"task\.toml:1: 1 cheats, at least 4",
    ),
    "reason": (
        replace("cheats/nan_prediction/cheat.toml", 'reason = "has NaN"\n', ""),
        r"nan_prediction/cheat\.toml:2: passes for any reason: add reason",
    ),
    "origin": (
        append("cheats/lying_ledger/cheat.toml", 'derived_from = "tools/best"\n'),
        r"lying_ledger/cheat\.toml:\d+: no directory tools/best",
    ),
    "cheat's profile": (
        replace("cheats/lying_ledger/cheat.toml", '["cpu", "gpu"]', '["cpu-9"]'),
        r"lying_ledger/cheat\.toml:\d+: unknown profile cpu-9",
    ),
    "cheat's docstring": (
        replace("cheats/lying_ledger/make.py", '"""', 'x = """'),
        r"lying_ledger/make\.py:1: has no docstring: say what",
    ),
    "cheat's module": (
        append("cheats/lying_ledger/make.py", f"\n# {TASK}.nowhere\n"),
        r"lying_ledger/make\.py:\d+: no module small_scaling_law\.nowhere",
    ),
    "direction": (replace(INSTRUCTIONS, "higher is", "lower is"), r"instructions\.md:\d+: says lower is better"),
    "submission": (
        lambda task: (task / INSTRUCTIONS).write_text((task / INSTRUCTIONS).read_text().replace("answer.json", "a.b")),
        r"instructions\.md:1: does not name the file to submit: add answer\.json",
    ),
    "entry point": (
        replace("pyproject.toml", f'\n{TASK} = "', '\nother = "'),
        r"pyproject\.toml:\d+: no entry point for",
    ),
    "no project": (
        lambda task: (task / "pyproject.toml").write_text("[tool.x]\n"),
        r"pyproject\.toml:\d+: no entry point for",
    ),
    "project": (replace("pyproject.toml", "[project]", "[project"), r"pyproject\.toml:5: invalid TOML"),
    "requirement": (
        replace("pyproject.toml", '"numpy"', '"numpy ="'),
        r"pyproject\.toml:\d+: 'numpy =' is not a requirement: write PACKAGE",
    ),
    "pin": (replace("../../constraints.txt", "numpy==", "# numpy=="), r"pyproject\.toml:\d+: numpy has no pin"),
    "lock": (remove(f"../../images/locks/{TASK}.txt"), r"Dockerfile:\d+: images/locks/small_scaling_law\.txt is mis"),
    "stale lock": (
        replace("../../images/locks.toml", '["matplotlib", "numpy", "scipy"]', '["numpy", "scipy", "pandas"]'),
        r"Dockerfile:\d+: images/locks/small_scaling_law\.txt is stale, it lacks pandas: type nox -s lock -- small_s",
    ),
    "no lock table": (
        replace("../../images/locks.toml", f"[{TASK}]", "[x]"),
        r"locks\.toml has no table small_scaling_law",
    ),
    "row": (
        replace("../../README.md", f"| `{TASK}` |", "| |"),
        r"README\.md:\d+: the table of tasks has no row for small",
    ),
}  # fmt: skip


TOGETHER = {
    "files": "toml, no file, no reference, no grading, syntax, long, docstring, canary, nothing, no description, "
    "cheat's docstring, cheat's module, entry point, no project",
    "manifest": "key, value, order, in manifest, canary in code, record, few, project, lock",
    "texts": "no method, undeclared, by hand, future, record's profile, stale, reason, origin, cheat's profile, "
    "direction, submission, requirement, stale lock, row",
    "methods": "no table, drawn, pin, no lock table",
    "anchors": "equal",
    "template": "template",
}
"""Breaks that do not hide each other: they are made in one task and must all be reported at once."""


def test_every_break_is_made() -> None:
    assert sorted(", ".join(TOGETHER.values()).split(", ")) == sorted(BREAKS)


@pytest.mark.parametrize("names", TOGETHER.values(), ids=TOGETHER)
def test_each_problem_is_reported_with_its_line(names: str, task: Path) -> None:
    for name in names.split(", "):
        BREAKS[name][0](task)
    problems = check_task(task, TODAY).problems
    output = "\n".join(map(str, problems))
    assert [name for name in names.split(", ") if not re.search(BREAKS[name][1], output)] == [], output
    fixable = [problem for problem in problems if problem.fix is not None]
    assert bool(fixable) == any("--fix" in problem.text for problem in problems)
    if fixable:
        assert fix_all([check_task(task, TODAY)]) == fixable
        assert [problem for problem in check_task(task, TODAY).problems if problem.fix is not None] == []


def test_an_unchanged_task_has_no_problems(task: Path) -> None:
    assert [*map(str, check_task(task, TODAY).problems)] == []


def test_old_anchors_are_reported(task: Path) -> None:
    problems = check_task(task, TODAY + dt.timedelta(days=400)).problems
    assert len(problems) == 2
    assert all(
        re.search(r"anchors\.toml:\d+: profile [cg]pu: the anchors are 40\d days old", str(one)) for one in problems
    )


def test_an_unusable_manifest_does_not_hide_missing_cheats(task: Path) -> None:
    (task / "anchors.toml").write_text("cpu = 3\n")
    BREAKS["nothing"][0](task)
    BREAKS["no description"][0](task)
    output = "\n".join(map(str, check_task(task, TODAY).problems))
    assert "anchors.toml" in output
    assert all(re.search(BREAKS[name][1], output) for name in ("nothing", "no description"))


def git(directory: Path, *arguments: str) -> None:
    names = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *names, *arguments], cwd=directory, check=True, capture_output=True)


def test_a_version_is_raised_when_the_scoring_changes(task: Path) -> None:
    version = open_task(task).manifest.version
    replace(MANIFEST, f"version = {version}", "version = 2")(task)
    message = (
        rf"task\.toml:5: version 2 is older than the scoring: since \w+ {TASK}/answer\.py changed: write version = 3"
    )
    assert "was not compared" in str(check_task(task, TODAY).notes[0])
    git(task, "init", "--quiet")
    git(task, "add", ".")
    git(task, "commit", "--quiet", "--message", "first")
    assert check_task(task, TODAY).notes == ()
    append(f"{TASK}/answer.py", "\n# A comment.\n")(task)
    replace("README.md", "This page", "The page")(task)
    assert check_task(task, TODAY).problems == ()
    append(f"{TASK}/answer.py", "\nMORE = 1\n")(task)
    assert re.search(message, str(check_task(task, TODAY).problems[0]))
    git(task, "commit", "--quiet", "--all", "--message", "second")
    assert re.search(message, str(check_task(task, TODAY).problems[0]))
    replace(MANIFEST, "version = 2", "version = 3")(task)
    assert check_task(task, TODAY).problems == ()
    git(task, "commit", "--quiet", "--all", "--message", "third")
    assert check_task(task, TODAY).problems == ()
    replace(MANIFEST, "wall_s = 900", "wall_s = 901")(task)
    assert "task.toml changed: write version = 4" in str(check_task(task, TODAY).problems[0])
    replace(MANIFEST, "version = 3", "version = 2")(task)
    assert "version 2 is lower than the committed 3" in str(check_task(task, TODAY).problems[0])


def test_check_command_reports_and_fixes_problems(
    task: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(task.parents[1])
    BREAKS["canary"][0](task)
    BREAKS["no description"][0](task)
    assert main(["check", TASK]) == 1
    assert "2 problems, 1 fixable with --fix" in capsys.readouterr().out
    assert main(["check", TASK, "--fix"]) == 1
    output = capsys.readouterr().out
    assert re.search(r"fixed: tasks/\w+/README\.md:1: has no canary line \(.*\)\n", output)
    assert f"tasks/{TASK}/cheats/idle:" in output
    assert main(["check", f"./tasks/{TASK}", "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["task"], problem["fixable"]) == (TASK, False)
    assert problem["file"] == f"tasks/{TASK}/cheats/idle"
    monkeypatch.chdir(task)  # next to the package, which has the task's name
    for name in (TASK, "ai_rd_small_scaling_law"):
        assert main(["check", name]) == 1
        assert "cheats/idle:" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["check", "small_scaling_lwa"])
    assert stopped.value.code == 2
    assert "did you mean small_scaling_law?" in capsys.readouterr().err


def test_stale_locks_and_results_of_the_repository_are_reported(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = task.parents[1]
    monkeypatch.chdir(top)
    assert list(repository_problems(top)) == []
    (top / "docs").unlink()
    (top / "docs").mkdir()
    shutil.copy(TOP / "docs" / "science.md", top / "docs")
    replace("../../docs/science.md", "| 0.378 |", "| 0.377 |")(task)
    replace("../../images/locks.toml", '["hatchling"]', '["hatchling", "editables"]')(task)
    output = "\n".join(map(str, repository_problems(top)))
    assert re.search(r"docs/science\.md:\d+: the table differs from anchors and records", output)
    assert re.search(r"images/locks/build\.txt:1: .*lacks editables", output)
    assert len(fix_all([Report(tuple(repository_problems(top)), ())])) == 1
    assert (top / "docs" / "science.md").read_text() == (TOP / "docs" / "science.md").read_text()
    assert len(list(repository_problems(top))) == 2


def test_no_large_package_and_nothing_of_a_task_is_imported_in_this_process() -> None:
    code = "import sys; from re_bench.cli.main import main; main(['check', 'fix_embedding']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "fix_embedding", "jinja2"} & set(done.stdout.splitlines()[-1].split())


def test_lines_of_toml() -> None:
    text = '# top\nb = 1\na = [\n  1,\n]\n[y."z w"]\nc = 1\n[x.y] # x\nc = 2\n\n[[l]]\nk = 1\n\n[[l]]\nk = 2\n'
    keys = {"b": 2, "a[0]": 3, 'y."z w".c': 7, "x.y.c": 9, "x.y.missing": 8, "l[0].k": 12, "l[1].k": 15, "no": 1}
    assert {key: line_of(text, key) for key in keys} == keys
