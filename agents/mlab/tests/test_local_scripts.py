"""A directory as a workspace: scripts, their output and environment, and the read-only files after them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlab_agent.workspaces import bubblewrap
from mlab_agent.workspaces.files import AGENT_DIRECTORY, WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace
from mlab_agent.workspaces.privileges import child_environment, hide_this_process, with_passwords

BOTH = pytest.mark.parametrize(
    "use_bubblewrap",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(not bubblewrap.is_available(), reason="bubblewrap does not work")),
    ],
)


@BOTH
def test_scripts_with_arguments_streams_and_exit_status(directory: Path, use_bubblewrap: bool) -> None:
    workspace = LocalWorkspace(directory, use_bubblewrap=use_bubblewrap)
    workspace.write(
        "a b.py", "import sys, os\nprint(sys.argv[1:], os.getcwd())\nprint('e', file=sys.stderr)\nsys.exit(3)\n"
    )
    done = workspace.execute("a b.py", ["x y", "--n=1", "$HOME"], 30)
    assert done.stdout == f"['x y', '--n=1', '$HOME'] {directory}\n"
    assert done.stderr == "e\n"
    assert (done.status, done.timed_out, done.output_file) == (3, False, None)
    workspace.write("s.sh", "kill -9 $$\n")
    assert workspace.execute("s.sh", [], 30).status == -9
    workspace.write("notes.txt", "hello")
    with pytest.raises(WorkspaceError, match="neither a Python file"):
        workspace.execute("notes.txt", [], 30)
    workspace.close()


@BOTH
def test_a_time_limit_ends_everything_that_was_started(directory: Path, use_bubblewrap: bool) -> None:
    workspace = LocalWorkspace(directory, use_bubblewrap=use_bubblewrap)
    started = "setsid sh -c 'sleep 600; true' &\n(trap '' TERM; sleep 600; true) &\n"
    workspace.write("s.sh", f"echo begun\n{started}: > begun\nsleep 600\n")
    for limit_s in (1.5, 10.0, 30.0):  # a busy machine may need all of the first before it has begun
        began = time.monotonic()
        done = workspace.execute("s.sh", [], limit_s)
        if (directory / "begun").exists():
            break
    assert (done.timed_out, done.status, done.stdout) == (True, None, "begun\n")
    assert time.monotonic() - began < 50
    assert none_works_in(directory)
    workspace.write("q.sh", "setsid sh -c 'sleep 600; true' >/dev/null 2>&1 &\n")
    assert workspace.execute("q.sh", [], 30).status == 0
    assert none_works_in(directory)
    workspace.close()


def none_works_in(directory: Path) -> bool:
    """Wait for a minute at most until no process has a directory as its own, by whatever name; tell whether so."""
    deadline = time.monotonic() + 60
    while (found := working_in(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not found


def working_in(directory: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if (process / "cwd").samefile(directory):
                found.append(process.name)
    return found


@BOTH
def test_a_script_that_removes_everything_still_has_its_output(directory: Path, use_bubblewrap: bool) -> None:
    workspace = LocalWorkspace(directory, use_bubblewrap=use_bubblewrap)
    (directory.parent / "elsewhere").mkdir()
    for obstacle in ("ln -s ../elsewhere .mlab-agent", "touch .mlab-agent", "true"):
        workspace.write("s.sh", f"echo before; rm -rf .mlab-agent *; echo after; {obstacle}\n")
        assert workspace.execute("s.sh", [], 30).stdout == "before\nafter\n"
    assert not list((directory.parent / "elsewhere").iterdir())
    workspace.write("s.sh", "cd .mlab-agent/outputs; for n in 4 9 99; do mkdir $n.txt $n.stdout; done; echo on\n")
    assert [workspace.execute("s.sh", [], 30).stdout for _again in range(2)] == ["on\n", "on\n"]
    workspace.close()


def test_long_output_is_shown_in_part_and_kept_whole(directory: Path) -> None:
    workspace = LocalWorkspace(directory, output_limit=1000)
    workspace.write("p.py", "import sys\nfor i in range(5000): print('line', i)\nprint('the error', file=sys.stderr)\n")
    done = workspace.execute("p.py", [], 30)
    assert done.stdout.startswith("line 0\n")
    assert done.stdout.endswith("line 4999\n")
    assert "bytes left out" in done.stdout
    assert len(done.stdout) < 1100
    assert done.output_file
    text = workspace.read(done.output_file)
    assert "line 2500\n" in text
    assert text.endswith("=== stderr ===\nthe error\n\n")
    workspace.write("s.sh", "true")
    for _count in range(20):
        workspace.execute("s.sh", [], 30)
    assert len(workspace.list_directory(f"{AGENT_DIRECTORY}/outputs")) == 20
    workspace.close()


@BOTH
def test_no_secret_is_in_a_scripts_environment(
    directory: Path, use_bubblewrap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1")
    monkeypatch.setenv("LC_INNOCENT", "prefix sk-real-2 suffix")
    monkeypatch.setenv("GITHUB_PAT", "ghp-3")
    monkeypatch.setenv("https_proxy", "http://user:password-4@proxy")
    monkeypatch.setenv("WANTED", "kept")
    workspace = LocalWorkspace(
        directory, use_bubblewrap=use_bubblewrap, secrets=["sk-real-2"], pass_variables=["WANTED"]
    )
    workspace.write("e.py", "import os\nprint(os.environ)\n")
    output = workspace.execute("e.py", [], 30).stdout
    assert not any(secret in output for secret in ("sk-test-1", "sk-real-2", "ghp-3", "password-4"))
    assert "'WANTED': 'kept'" in output
    assert "'PATH'" in output
    workspace.close()


def test_which_variables_are_passed() -> None:
    variables = dict.fromkeys(
        ("HF_TOKEN", "AWS_PROFILE", "DATABASE_URL", "SSH_AUTH_SOCK", "NVIDIA_API_KEY", "TF_VAR_db", "PYTHON_KEYS"), "s"
    )
    common = {
        "PATH": "p",
        "LC_ALL": "C",
        "CUDA_VISIBLE_DEVICES": "0",
        "HTTP_PROXY": "http://proxy:1",
        "TERM": "has value",
    }
    assert set(child_environment(variables | common)) == set(common)
    assert set(child_environment(variables | common, ["has value"])) == set(common) - {"TERM"}
    assert set(child_environment(variables | common, ["p", "has v"])) == set(common)  # as a key that is none would be
    assert set(child_environment(variables, passed=["HF_TOKEN"])) == {"HF_TOKEN"}
    names = "PIP_INDEX_URL PIP_CONSTRAINT UV_CACHE_DIR PKG_CONFIG_PATH CMAKE_PREFIX_PATH JAVA_HOME RE_BENCH_CACHE"
    for_builds = dict.fromkeys([*names.split(), "HF_HUB_DISABLE_XET"], "http://mirror/simple")
    assert set(child_environment(for_builds | {"UV_PUBLISH_TOKEN": "t", "UV_INDEX_A_PASSWORD": "p"})) == set(for_builds)
    held_back = {"PIP_EXTRA_INDEX_URL": "http://a:b@mirror", "https_proxy": "http://a:b@proxy", "OTHER": "http://a:b@c"}
    assert child_environment(held_back) == {}
    assert with_passwords(held_back, ["https_proxy"]) == ["PIP_EXTRA_INDEX_URL"]


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/usr/bin/setpriv").exists(), reason="needs root and setpriv")
def test_a_hidden_process_keeps_its_first_environment_from_its_children(tmp_path: Path) -> None:
    assert hide_this_process.__doc__
    code = (
        "import os, sys, subprocess\n{hide}"
        "done = subprocess.run(['cat', f'/proc/{{os.getpid()}}/environ'], capture_output=True, env={{}})\n"
        "print('sk-test' in done.stdout.decode())"
    )
    for hide, seen in (
        ("", "True"),
        ("from mlab_agent.workspaces.privileges import hide_this_process as h; h()\n", "False"),
    ):
        command = ["setpriv", "--reuid=12345", "--clear-groups", sys.executable, "-c", code.format(hide=hide)]
        source = str(Path(__file__).parents[1] / "src")
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd="/",
            env={"KEY": "sk-test", "PATH": os.environ["PATH"], "PYTHONPATH": source},
        )  # fmt: skip
        assert done.stdout.strip() == seen, done.stderr
    assert tmp_path


SPOIL = """
import os, shutil
for name in ("train.csv", "data/x"):
    try:
        with open(name, "w") as file:
            file.write("spoilt")
    except OSError as error:
        print("refused", error.errno)
try:
    shutil.rmtree("data")
    os.symlink("elsewhere", "data")
except OSError as error:
    print("refused", error.errno)
"""


@BOTH
def test_read_only_files_are_as_before_after_a_script(directory: Path, use_bubblewrap: bool, tmp_path: Path) -> None:
    (directory / "data").mkdir()
    (directory / "train.csv").write_text("truth")
    (directory / "data" / "x").write_text("more truth")
    workspace = LocalWorkspace(
        directory, read_only=["train.csv", "data"], use_bubblewrap=use_bubblewrap, state=tmp_path / "state"
    )
    workspace.write("spoil.py", SPOIL)
    done = workspace.execute("spoil.py", [], 30)
    assert done.status == 0, done.stderr
    assert (directory / "train.csv").read_text() == "truth"
    assert (directory / "data" / "x").read_text() == "more truth"
    assert not (directory / "data").is_symlink()
    if use_bubblewrap:
        assert done.stdout.count("refused") == 3
        assert done.notes == ()
    else:
        assert "The script changed the read-only file train.csv; it was put back." in done.notes
        assert workspace.execute("spoil.py", [], 30).notes == done.notes
    workspace.close()


def test_a_file_without_a_copy_is_at_least_reported(directory: Path, tmp_path: Path) -> None:
    with (directory / "big.bin").open("wb") as big:
        big.truncate(65 << 20)
    workspace = LocalWorkspace(directory, read_only=["*.bin"], use_bubblewrap=False, state=tmp_path / "state")
    workspace.write("s.sh", "echo x >> big.bin\n")
    assert "there is no copy" in workspace.execute("s.sh", [], 30).notes[0]
    assert workspace.execute("s.sh", [], 30).notes
    workspace.close()


def test_many_read_only_files_are_mounted_with_their_directories_or_put_back(directory: Path) -> None:
    for name in [*(f"data/{number}" for number in range(3000)), *(f"{number}.csv" for number in range(220))]:
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("truth")
    workspace = LocalWorkspace(directory, read_only=["data/*", "*.csv"])
    workspace.write("s.sh", "echo spoilt > data/7; for name in *.csv; do echo spoilt > $name; done; true")
    done = workspace.execute("s.sh", [], 60)
    assert done.status == 0, done
    assert workspace.read("data/7") == "truth"
    assert {path.read_text() for path in directory.glob("*.csv")} == {"truth"}
    assert ("data/7: Read-only file system" in done.stderr) == bubblewrap.is_available()
    workspace.close()
