"""``prepare.py`` of a task, the ways to call it, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from re_bench.errors import ReBenchError, UsageError
from re_bench.task.prepare import run_preparation

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench.task.discovery import Task

    Change = Callable[[Task, str, str, str], Task]
    Command = Callable[..., subprocess.CompletedProcess[str]]

TOP = Path(__file__).resolve().parents[2]


def prepare_py(task: Task, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "re_bench.task.prepare", str(task.directory), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def fail_with(change: Change) -> Callable[[Task, str], None]:
    """Return what makes the preparation of a task raise something."""

    def failing(task: Task, failure: str) -> None:
        raising = f"        from re_bench import errors\n        raise {failure}"
        change(task, "prepare.py", '        print("chatter of a library")', raising)

    return failing


def test_it_prepares_once_and_lays_out_every_time(made_up: Task, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    for profile in ("cpu", "gpu"):
        first = prepare_py(made_up, "--profile", profile)
        assert (first.returncode, first.stderr) == (0, f"made_up: making what {profile} needs\n")
        assert list((tmp_path / "into").glob(profile)) == []
        again = prepare_py(made_up, "--profile", profile, "--into", tmp_path / "into")
        assert (again.returncode, again.stderr, again.stdout) == (0, "", "")
        assert (tmp_path / "into" / "data").read_text() == f"prepared for {profile}"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--profile", "paper"], "prepare.py: made_up has no profile 'paper'; it has: cpu, gpu\n"),
        (
            ["--profile", "cpu", "--into", "/nowhere/x"],
            "prepare.py: /nowhere/x: not a directory; give one that exists\n",
        ),
        (
            ["--profile", "cpu", "--instance", "1"],
            "prepare.py: made_up has no instances to choose from in profile cpu; leave --instance out\n",
        ),
    ],
)
def test_a_wrong_request_is_one_line_and_2_and_nothing_is_made(
    made_up: Task, tmp_path: Path, arguments: list[str], text: str
) -> None:
    done = prepare_py(made_up, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", text)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "--profile"),
        (["--profile", "huge"], "made_up has no profile 'huge'; it has: cpu, gpu"),
        (["--profile", "auto"], "made_up has no profile 'auto'; it has: cpu, gpu"),
    ],
)
def test_a_profile_must_be_named(made_up: Task, arguments: list[str], text: str) -> None:
    done = prepare_py(made_up, *arguments)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("kind", "status"), [("UsageError", 2), ("ReBenchError", 1)])
def test_a_failure_that_is_foreseen_is_one_line(
    made_up: Task, kind: str, status: int, fail_with: Callable[[Task, str], None]
) -> None:
    fail_with(made_up, f'errors.{kind}("no wheels here; fetch them")')
    done = prepare_py(made_up, "--profile", "cpu")
    lines = ["made_up: making what cpu needs", "prepare.py: no wheels here; fetch them"]
    assert (done.returncode, done.stderr.splitlines()) == (status, lines)


def test_a_broken_manifest_is_named(made_up: Task) -> None:
    (made_up.directory / "task.toml").write_text("id = 1")
    done = prepare_py(made_up, "--profile", "cpu")
    assert done.returncode == 1
    assert "made_up/task.toml: id: Input should be a valid string, got 1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_it_has_cleared_up(
    made_up: Task, tmp_path: Path, number: signal.Signals, change: Change
) -> None:
    wait = f"""        import tempfile, time
        with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}, prefix="half-"):
            say("half-way")
            time.sleep(600)"""
    change(made_up, "prepare.py", '        print("chatter of a library")', wait)
    command = [sys.executable, "-m", "re_bench.task.prepare", str(made_up.directory), "--profile", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "half-way" not in process.stderr.readline():
            assert process.poll() is None
        assert len(list(tmp_path.glob("half-*"))) == 1
        process.send_signal(number)
        assert (process.wait(60), process.stderr.read()) == (128 + number, "")
    assert list(tmp_path.glob("half-*")) == []


def test_the_caller_passes_on_what_it_says_and_nothing_on_stdout(
    made_up: Task, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "into").mkdir()
    assert run_preparation(made_up, "cpu", tmp_path / "into")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert sorted(shown.err.splitlines()) == ["chatter of a library", "made_up: making what cpu needs"]
    assert (tmp_path / "into" / "data").read_text() == "prepared for cpu"


def test_the_caller_tells_failures_apart(
    made_up: Task, capfd: pytest.CaptureFixture[str], fail_with: Callable[[Task, str], None]
) -> None:
    with pytest.raises(UsageError, match=r"made_up: profile paper cannot be prepared here; the message .* is above"):
        run_preparation(made_up, "paper")
    fail_with(made_up, "KeyError('ours')")
    with pytest.raises(ReBenchError, match=r"made_up: prepare\.py ended with exit status 1 in profile cpu") as caught:
        run_preparation(made_up, "cpu")
    assert not isinstance(caught.value, UsageError)
    assert "KeyError: 'ours'" in capfd.readouterr().err


def test_a_task_without_a_program_needs_nothing(made_up: Task, tmp_path: Path) -> None:
    made_up.preparer.unlink()
    assert not run_preparation(made_up, "cpu", tmp_path / "nowhere")


def test_the_command_prepares_the_tasks_it_is_given(made_up: Task, tmp_path: Path, re_bench: Command) -> None:
    first = re_bench("prepare", made_up.directory, TOP / "tasks" / "triton_cumsum", "--profile", "cpu", "--json")
    assert first.returncode == 0, first.stderr
    outcomes = [(entry["task"], entry["profile"], entry["outcome"]) for entry in json.loads(first.stdout)["tasks"]]
    assert outcomes == [("made_up", "cpu", "prepared"), ("triton_cumsum", "cpu", "nothing to prepare")]
    assert "made_up: making what cpu needs" in first.stderr
    assert (tmp_path / "cache" / "made_up" / "cpu" / "data").is_file()
    again = re_bench("prepare", made_up.directory, "--profile", "cpu")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("made_up, profile cpu: prepared, ")


WITHOUT_INSTALLED_TASKS = """
import importlib.metadata as metadata, sys
entry_points = metadata.entry_points
metadata.entry_points = lambda **of: () if of == {"group": "re_bench.tasks"} else entry_points(**of)
from re_bench.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_names_the_command_prepares_all_that_need_it(made_up: Task, tmp_path: Path) -> None:
    def re_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT_INSTALLED_TASKS, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=checkout)

    checkout = tmp_path / "checkout"  # as a repository with this task and one that needs nothing
    (checkout / "common").mkdir(parents=True)
    (checkout / "noxfile.py").touch()
    (checkout / "tasks").mkdir()
    made_up.directory.rename(checkout / "tasks" / "made_up")
    (checkout / "tasks" / "plain").mkdir()
    (checkout / "tasks" / "plain" / "task.toml").write_bytes(
        (checkout / "tasks" / "made_up" / "task.toml").read_bytes()
    )
    for profile, outcome in (("cpu", "prepared"), ("paper", "no such profile")):
        done = re_bench("prepare", "--profile", profile)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"made_up, profile {profile}: {outcome}, ")
        assert len(done.stdout.splitlines()) == 1
    (checkout / "tasks" / "made_up" / "prepare.py").unlink()
    done = re_bench("prepare")
    assert (done.returncode, done.stdout) == (0, "no task here needs anything prepared\n")


def test_the_command_refuses_before_it_prepares_anything(made_up: Task, tmp_path: Path, re_bench: Command) -> None:
    for other, profile, text in (
        ("nothing", "cpu", "re-bench: there is no task 'nothing'; known tasks:"),
        (TOP / "tasks" / "triton_cumsum", "paper", "re-bench: made_up has no profile 'paper'; it has: cpu, gpu"),
    ):
        done = re_bench("prepare", made_up.directory, other, "--profile", profile)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(text)
    assert not (tmp_path / "cache").exists()


def test_the_command_ends_with_2_where_it_cannot_be_prepared(
    made_up: Task, re_bench: Command, fail_with: Callable[[Task, str], None]
) -> None:
    fail_with(made_up, 'errors.UsageError("no wheels here")')
    done = re_bench("prepare", made_up.directory, "--profile", "cpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[1:] == [
        "prepare.py: no wheels here",
        "re-bench: made_up: profile cpu cannot be prepared here; the message of prepare.py is above",
    ]


def test_a_missing_package_is_named_with_what_brings_it(made_up: Task, change: Change, re_bench: Command) -> None:
    message = "prepare.py: made_up: the package nowhere is missing; run: "
    message += "pip install -c constraints.txt -e common -e tasks/made_up"
    change(made_up, "prepare.py", '        print("chatter of a library")', "        import nowhere.at_all")
    done = prepare_py(made_up, "--profile", "cpu")
    assert (done.returncode, done.stderr.splitlines()) == (2, ["made_up: making what cpu needs", message])
    change(made_up, "prepare.py", "import shutil\n", "import shutil\n\nimport nowhere\n")
    done = re_bench("prepare", made_up.directory, "--profile", "cpu")
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", message)
    assert "Traceback" not in done.stderr


def test_modules_beside_it_are_found_and_those_of_the_current_directory_are_not(
    made_up: Task, tmp_path: Path, change: Change
) -> None:
    (made_up.directory / "beside.py").write_text("value = 'mine'\n")
    for name in ("beside", "json", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError\n")
    change(made_up, "prepare.py", "import shutil\n", "import json\nimport shutil\n\nimport beside\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("re-bench"), "prepare", made_up.directory, "--profile", "cpu"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
