"""A directory as a workspace: paths, read-only files, scripts, snapshots."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlab_agent.workspaces import bubblewrap
from mlab_agent.workspaces.files import AGENT_DIRECTORY, WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace
from mlab_agent.workspaces.privileges import child_environment, hide_this_process, with_passwords

if TYPE_CHECKING:
    from collections.abc import Iterator


BOTH = pytest.mark.parametrize(
    "use_bubblewrap",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(not bubblewrap.is_available(), reason="bubblewrap does not work")),
    ],
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def workspace(directory: Path) -> Iterator[LocalWorkspace]:
    local = LocalWorkspace(directory)
    yield local
    local.close()


def test_files_are_listed_read_written_copied_and_removed(workspace: LocalWorkspace, directory: Path) -> None:
    workspace.write("a/b.py", "x = 1\n")
    workspace.copy("a/b.py", "c.py")
    (directory / "l").symlink_to("c.py")
    assert [(entry.name, entry.kind) for entry in workspace.list_directory(".")] == [
        ("a", "directory"),
        ("c.py", "file"),
        ("l", "link"),
    ]
    assert workspace.read("l") == "x = 1\n"
    workspace.remove("c.py")
    assert not workspace.exists("c.py")
    with pytest.raises(WorkspaceError, match="does not exist"):
        workspace.read("c.py")
    with pytest.raises(WorkspaceError, match="is a directory, not a file"):
        workspace.read("a")
    with pytest.raises(WorkspaceError, match="is no directory"):
        workspace.list_directory("a/b.py")


def test_a_write_keeps_the_mode_and_leaves_nothing_else(workspace: LocalWorkspace, directory: Path) -> None:
    workspace.write("run.sh", "echo 1")
    (directory / "run.sh").chmod(0o750)
    workspace.write("run.sh", "echo 2")
    assert stat.S_IMODE((directory / "run.sh").stat().st_mode) == 0o750
    assert names(directory) == ["run.sh"]


def test_files_that_are_too_long_are_never_read_in_part(workspace: LocalWorkspace, directory: Path) -> None:
    with (directory / "big").open("wb") as big:
        big.truncate(33 << 20)
    with pytest.raises(WorkspaceError, match=r"33.0 MiB; files of at most 32 MiB"):
        workspace.read("big")
    workspace.copy("big", "copy")  # copying does not need to read it at once
    assert (directory / "copy").stat().st_size == 33 << 20


def test_a_fifo_neither_hangs_nor_is_a_file(workspace: LocalWorkspace, directory: Path) -> None:
    os.mkfifo(directory / "f")
    with pytest.raises(WorkspaceError, match="special file"):
        workspace.read("f")


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "../ws_evil/x",
        "out/x",
        "up",
        "chain/x",
        "..",
        "/",
        "",
        " ",
        "a\0b",
        "\ud800",
    ],
)
def test_nothing_out_of_the_workspace_can_be_named(workspace: LocalWorkspace, directory: Path, path: str) -> None:
    evil = directory.parent / "ws_evil"
    evil.mkdir()
    (evil / "x").write_text("secret")
    (directory.parent / "x").write_text("secret")
    (directory / "out").symlink_to(evil)
    (directory / "up").symlink_to("../x")
    (directory / "chain").symlink_to("out")
    for attempt in (
        workspace.read,
        workspace.list_directory,
        lambda path: workspace.write(path, "new"),
        workspace.remove,
        workspace.exists,
    ):
        with pytest.raises(WorkspaceError):
            attempt(path)
    workspace.write("fine", "1")
    with pytest.raises(WorkspaceError):
        workspace.copy("fine", path)
    with pytest.raises(WorkspaceError):
        workspace.copy(path, "fine")
    with pytest.raises(WorkspaceError):
        workspace.execute(path, [], 5)
    assert (evil / "x").read_text() == (directory.parent / "x").read_text() == "secret"


def test_the_workspace_by_its_whole_name_and_through_inner_links(workspace: LocalWorkspace, directory: Path) -> None:
    workspace.write(f"{directory}/a.txt", "1")
    (directory / "d").mkdir()
    (directory / "in").symlink_to(directory / "d")
    workspace.write("in/../b.txt", "2")
    workspace.write("in/c.txt", "3")
    assert workspace.read("a.txt") == "1"
    assert workspace.name("in/c.txt") == workspace.name("./d//c.txt") == "d/c.txt"


NAMES = st.sampled_from(["a", "b", "..", ".", "", "in", "out", "/", "~", "data", "train.csv", "loop", "ws", "ws_evil"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(NAMES, min_size=1, max_size=6), absolute=st.booleans())
def test_any_path_is_inside_or_refused(tmp_path: Path, parts: list[str], absolute: bool) -> None:
    directory = tmp_path / "ws"
    if not directory.exists():
        (tmp_path / "ws_evil").mkdir()
        (tmp_path / "ws_evil" / "a").write_text("secret")
        (directory / "data").mkdir(parents=True)
        (directory / "data" / "train.csv").write_text("truth")
        (directory / "in").symlink_to("data")
        (directory / "out").symlink_to("..")
        (directory / "loop").symlink_to("loop")
        (directory / "b").symlink_to("data/train.csv")
    workspace = LocalWorkspace(directory, read_only=["data"], use_bubblewrap=False, state=tmp_path / "state")
    path = ("/" if absolute else "") + "/".join(parts)
    try:
        workspace.write(path, "written")
        name = workspace.name(path)
    except WorkspaceError:
        name = ""
    workspace.close()
    assert (tmp_path / "ws_evil" / "a").read_text() == "secret"
    assert (directory / "data" / "train.csv").read_text() == "truth"
    assert names(tmp_path) in (["state", "ws", "ws_evil"], ["ws", "ws_evil"])
    if name:
        assert ".." not in PurePosixPath(name).parts
        assert (directory / name).read_text() == "written"
        assert Path(os.path.realpath(directory / name)).is_relative_to(directory)


@pytest.mark.parametrize("path", ["train.csv", "./train.csv", "data//x", "data/./x", "data/sub/../x", "alias", "dir/x"])
def test_read_only_files_stay_so_by_every_name(directory: Path, path: str) -> None:
    (directory / "data" / "sub").mkdir(parents=True)
    (directory / "train.csv").write_text("truth")
    (directory / "data" / "x").write_text("truth")
    (directory / "alias").symlink_to("train.csv")
    (directory / "dir").symlink_to("data")
    workspace = LocalWorkspace(directory, read_only=["./train.csv", "data/"])
    (directory / "other").write_text("other")
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.write(path, "no")
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.copy("other", path)
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.remove(path)
    assert workspace.read(path) == "truth"
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.write("data/new", "no")
    workspace.close()


def test_a_link_with_the_name_of_a_read_only_file_is_read_only(directory: Path) -> None:
    (directory / "real.csv").write_text("truth")
    (directory / "train.csv").symlink_to("real.csv")
    workspace = LocalWorkspace(directory, read_only=["train.csv"])
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.write("train.csv", "no")
    workspace.close()


def test_the_agents_own_directory_cannot_be_written(workspace: LocalWorkspace) -> None:
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.write(f"{AGENT_DIRECTORY}/outputs/1.txt", "no")


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
    workspace.write(
        "s.sh",
        "echo begun\nsetsid sh -c 'sleep 3; touch late' &\n(trap '' TERM; sleep 3; touch late2) &\nsleep 60\n",
    )
    began = time.monotonic()
    done = workspace.execute("s.sh", [], 1.5)
    assert (done.timed_out, done.status, done.stdout) == (True, None, "begun\n")
    assert time.monotonic() - began < 50
    workspace.write("q.sh", "setsid sh -c 'sleep 1; touch late3' >/dev/null 2>&1 &\n")
    assert workspace.execute("q.sh", [], 30).status == 0
    time.sleep(1.5)
    assert not [name for name in names(directory) if name.startswith("late")]
    workspace.close()


@BOTH
def test_a_script_that_removes_everything_still_has_its_output(directory: Path, use_bubblewrap: bool) -> None:
    workspace = LocalWorkspace(directory, use_bubblewrap=use_bubblewrap)
    (directory.parent / "elsewhere").mkdir()
    for obstacle in ("ln -s ../elsewhere .mlab-agent", "touch .mlab-agent", "true"):
        workspace.write("s.sh", f"echo before; rm -rf .mlab-agent *; echo after; {obstacle}\n")
        assert workspace.execute("s.sh", [], 30).stdout == "before\nafter\n"
    assert names(directory.parent / "elsewhere") == []
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


def test_the_answer_is_a_file(directory: Path, tmp_path: Path) -> None:
    workspace = LocalWorkspace(directory)
    workspace.finish("42")
    workspace.finish("42")
    assert (directory / "submission.txt").read_text() == "42"
    assert workspace.finished
    workspace.close()
    other = LocalWorkspace(directory, submission=tmp_path / "answer.txt")
    other.finish("43")
    assert (tmp_path / "answer.txt").read_text() == "43"
    assert other.score() is None
    other.close()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_answer_goes_out_whatever_a_script_has_put_there(directory: Path) -> None:
    outside = directory.parent / "outside.txt"
    outside.write_text("kept")
    (directory / "submission.txt").symlink_to(outside)
    workspace = LocalWorkspace(directory, read_only=["submission.txt"])
    workspace.finish("1")
    assert (directory / "submission.txt").read_text() == "1"
    assert outside.read_text() == "kept"
    (directory / "submission.txt").unlink()
    (directory / "submission.txt" / "full").mkdir(parents=True)
    workspace.finish("2")
    assert (directory / "submission.txt").read_text() == "2"
    workspace.close()


def tree(directory: Path) -> dict[str, tuple[str, object, int]]:
    entries: dict[str, tuple[str, object, int]] = {}
    for path in directory.rglob("*"):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            entries[name] = ("link", str(path.readlink()), 0)
        elif path.is_dir():
            entries[name] = ("directory", None, 0)
        else:
            entries[name] = ("file", path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return entries


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "mkdir", "link", "chmod"]),
        st.sampled_from(["a", "b", "d/a", "d/e/a", "d", "d/e", "f.py"]),
        st.sampled_from([b"", b"1", b"22", bytes(range(256))]),
    ),
    max_size=8,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(first=STEPS, second=STEPS)
def test_a_restored_workspace_is_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, first: list[tuple[str, str, bytes]], second: list[tuple[str, str, bytes]]
) -> None:
    base = tmp_path_factory.mktemp("snap")
    directory, store = base / "ws", base / "store"
    directory.mkdir()
    workspace = LocalWorkspace(directory, use_bubblewrap=False, state=base / "state")
    change(directory, first)
    before, name = tree(directory), workspace.snapshot(store)
    change(directory, second)
    after, other = tree(directory), workspace.snapshot(store)
    workspace.restore(store, name)
    assert tree(directory) == before
    workspace.close()
    workspace = LocalWorkspace(directory, use_bubblewrap=False, state=base / "state")  # another process, later
    workspace.restore(store, other)
    assert tree(directory) == after
    assert workspace.snapshot(store) == other
    workspace.close()


def change(directory: Path, steps: list[tuple[str, str, bytes]]) -> None:
    for what, name, data in steps:
        path = directory / name
        try:
            if what == "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            elif what == "delete":
                path.unlink()
            elif what == "mkdir":
                path.mkdir()
            elif what == "link":
                path.symlink_to("a")
            else:
                path.chmod(0o700)
        except OSError:
            pass


def test_a_snapshot_costs_what_changed(directory: Path, tmp_path: Path) -> None:
    workspace = LocalWorkspace(directory, read_only=["data"], snapshot_excludes=["scratch"], snapshot_limit=1 << 20)
    (directory / "data").mkdir()
    (directory / "data" / "x").write_text("left out: read-only")
    (directory / "scratch").mkdir()
    (directory / "scratch" / "y").write_text("left out: asked for")
    (directory / "deep" / "er").mkdir(parents=True)
    for number in range(50):
        (directory / "deep" / "er" / f"{number}.txt").write_bytes(os.urandom(2000))
    with (directory / "model.pt").open("wb") as model:
        model.truncate(2 << 20)
    store = tmp_path / "store"
    workspace.snapshot(store)
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    workspace.snapshot(store)
    assert sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) == size
    workspace.write("new.py", "x = 1\n")
    last = workspace.snapshot(store)
    grown = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) - size
    assert grown < 1000
    (directory / "deep" / "er" / "1.txt").unlink()
    workspace.restore(store, last)
    assert (directory / "deep" / "er" / "1.txt").stat().st_size == 2000
    assert (directory / "model.pt").stat().st_size == 2 << 20  # too long to be kept, and not touched either
    assert (directory / "data" / "x").exists()
    assert (directory / "scratch" / "y").exists()
    with pytest.raises(WorkspaceError, match="not in the store"):
        workspace.restore(store, "0" * 64)
    workspace.close()


def test_a_damaged_end_of_the_index_is_ignored(directory: Path, tmp_path: Path) -> None:
    workspace = LocalWorkspace(directory)
    workspace.write("a", "1")
    name = workspace.snapshot(tmp_path / "store")
    workspace.close()
    with (tmp_path / "store" / "index.jsonl").open("a") as index:
        index.write('["a", "torn')
    workspace = LocalWorkspace(directory)
    assert workspace.snapshot(tmp_path / "store") == name
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
