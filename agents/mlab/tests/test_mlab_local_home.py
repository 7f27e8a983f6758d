"""A directory as a home: paths, read-only files, scripts, snapshots."""

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

from mlab_agent.homes import PRIVATE, HomeError, containment
from mlab_agent.homes.local import LocalHome
from mlab_agent.homes.running import child_environment, hide_this_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlab_agent.homes import Home

BOTH = pytest.mark.parametrize(
    "contain",
    [False, pytest.param(True, marks=pytest.mark.skipif(not containment.works(), reason="bubblewrap does not work"))],
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    return place


@pytest.fixture
def home(place: Path) -> Iterator[LocalHome]:
    with_protocol: Home
    home = with_protocol = LocalHome(place)
    yield home
    with_protocol.close()


def test_files_are_listed_read_written_copied_and_removed(home: LocalHome, place: Path) -> None:
    home.write("a/b.py", "x = 1\n")
    home.copy("a/b.py", "c.py")
    (place / "l").symlink_to("c.py")
    assert [(each.name, each.kind) for each in home.list(".")] == [("a", "directory"), ("c.py", "file"), ("l", "link")]
    assert home.read("l") == "x = 1\n"
    home.remove("c.py")
    assert not home.exists("c.py")
    with pytest.raises(HomeError, match="does not exist"):
        home.read("c.py")
    with pytest.raises(HomeError, match="is a directory, not a file"):
        home.read("a")
    with pytest.raises(HomeError, match="is no directory"):
        home.list("a/b.py")


def test_a_write_keeps_the_mode_and_leaves_nothing_else(home: LocalHome, place: Path) -> None:
    home.write("run.sh", "echo 1")
    (place / "run.sh").chmod(0o750)
    home.write("run.sh", "echo 2")
    assert stat.S_IMODE((place / "run.sh").stat().st_mode) == 0o750
    assert names(place) == ["run.sh"]


def test_files_that_are_too_long_are_never_read_in_part(home: LocalHome, place: Path) -> None:
    with (place / "big").open("wb") as big:
        big.truncate(33 << 20)
    with pytest.raises(HomeError, match=r"33.0 MiB; files of at most 32 MiB"):
        home.read("big")
    home.copy("big", "copy")  # copying does not need to read it at once
    assert (place / "copy").stat().st_size == 33 << 20


def test_a_fifo_neither_hangs_nor_is_a_file(home: LocalHome, place: Path) -> None:
    os.mkfifo(place / "f")
    with pytest.raises(HomeError, match="special file"):
        home.read("f")


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
def test_nothing_out_of_the_workspace_can_be_named(home: LocalHome, place: Path, path: str) -> None:
    evil = place.parent / "ws_evil"
    evil.mkdir()
    (evil / "x").write_text("secret")
    (place.parent / "x").write_text("secret")
    (place / "out").symlink_to(evil)
    (place / "up").symlink_to("../x")
    (place / "chain").symlink_to("out")
    for attempt in (home.read, home.list, lambda each: home.write(each, "new"), home.remove, home.exists):
        with pytest.raises(HomeError):
            attempt(path)
    home.write("fine", "1")
    with pytest.raises(HomeError):
        home.copy("fine", path)
    with pytest.raises(HomeError):
        home.copy(path, "fine")
    with pytest.raises(HomeError):
        home.execute(path, [], 5)
    assert (evil / "x").read_text() == (place.parent / "x").read_text() == "secret"


def test_the_workspace_by_its_whole_name_and_through_inner_links(home: LocalHome, place: Path) -> None:
    home.write(f"{place}/a.txt", "1")
    (place / "d").mkdir()
    (place / "in").symlink_to(place / "d")
    home.write("in/../b.txt", "2")
    home.write("in/c.txt", "3")
    assert home.read("a.txt") == "1"
    assert home.name("in/c.txt") == home.name("./d//c.txt") == "d/c.txt"


NAMES = st.sampled_from(["a", "b", "..", ".", "", "in", "out", "/", "~", "data", "train.csv", "loop", "ws", "ws_evil"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=st.lists(NAMES, min_size=1, max_size=6), absolute=st.booleans())
def test_any_path_is_inside_or_refused(tmp_path: Path, parts: list[str], absolute: bool) -> None:
    place = tmp_path / "ws"
    if not place.exists():
        (tmp_path / "ws_evil").mkdir()
        (tmp_path / "ws_evil" / "a").write_text("secret")
        (place / "data").mkdir(parents=True)
        (place / "data" / "train.csv").write_text("truth")
        (place / "in").symlink_to("data")
        (place / "out").symlink_to("..")
        (place / "loop").symlink_to("loop")
        (place / "b").symlink_to("data/train.csv")
    home = LocalHome(place, read_only=["data"], contain=False, state=tmp_path / "state")
    path = ("/" if absolute else "") + "/".join(parts)
    try:
        home.write(path, "written")
        name = home.name(path)
    except HomeError:
        name = ""
    home.close()
    assert (tmp_path / "ws_evil" / "a").read_text() == "secret"
    assert (place / "data" / "train.csv").read_text() == "truth"
    assert names(tmp_path) in (["state", "ws", "ws_evil"], ["ws", "ws_evil"])
    if name:
        assert ".." not in PurePosixPath(name).parts
        assert (place / name).read_text() == "written"
        assert Path(os.path.realpath(place / name)).is_relative_to(place)


@pytest.mark.parametrize("path", ["train.csv", "./train.csv", "data//x", "data/./x", "data/sub/../x", "alias", "dir/x"])
def test_read_only_files_stay_so_by_every_name(place: Path, path: str) -> None:
    (place / "data" / "sub").mkdir(parents=True)
    (place / "train.csv").write_text("truth")
    (place / "data" / "x").write_text("truth")
    (place / "alias").symlink_to("train.csv")
    (place / "dir").symlink_to("data")
    home = LocalHome(place, read_only=["./train.csv", "data/"])
    (place / "other").write_text("other")
    with pytest.raises(HomeError, match="is read-only"):
        home.write(path, "no")
    with pytest.raises(HomeError, match="is read-only"):
        home.copy("other", path)
    with pytest.raises(HomeError, match="is read-only"):
        home.remove(path)
    assert home.read(path) == "truth"
    with pytest.raises(HomeError, match="is read-only"):
        home.write("data/new", "no")
    home.close()


def test_a_link_with_the_name_of_a_read_only_file_is_read_only(place: Path) -> None:
    (place / "real.csv").write_text("truth")
    (place / "train.csv").symlink_to("real.csv")
    home = LocalHome(place, read_only=["train.csv"])
    with pytest.raises(HomeError, match="is read-only"):
        home.write("train.csv", "no")
    home.close()


def test_the_agents_own_directory_cannot_be_written(home: LocalHome) -> None:
    with pytest.raises(HomeError, match="is read-only"):
        home.write(f"{PRIVATE}/outputs/1.txt", "no")


@BOTH
def test_scripts_with_arguments_streams_and_exit_status(place: Path, contain: bool) -> None:
    home = LocalHome(place, contain=contain)
    home.write("a b.py", "import sys, os\nprint(sys.argv[1:], os.getcwd())\nprint('e', file=sys.stderr)\nsys.exit(3)\n")
    done = home.execute("a b.py", ["x y", "--n=1", "$HOME"], 30)
    assert done.stdout == f"['x y', '--n=1', '$HOME'] {place}\n"
    assert done.stderr == "e\n"
    assert (done.status, done.timed_out, done.whole) == (3, False, None)
    home.write("s.sh", "kill -9 $$\n")
    assert home.execute("s.sh", [], 30).status == -9
    home.write("notes.txt", "hello")
    with pytest.raises(HomeError, match="neither a Python file"):
        home.execute("notes.txt", [], 30)
    home.close()


@BOTH
def test_a_time_limit_ends_everything_that_was_started(place: Path, contain: bool) -> None:
    home = LocalHome(place, contain=contain)
    home.write(
        "s.sh",
        "echo begun\nsetsid sh -c 'sleep 1.2; touch late' &\n(trap '' TERM; sleep 1.2; touch late2) &\nsleep 60\n",
    )
    began = time.monotonic()
    done = home.execute("s.sh", [], 0.5)
    assert (done.timed_out, done.status, done.stdout) == (True, None, "begun\n")
    assert time.monotonic() - began < 10
    home.write("q.sh", "setsid sh -c 'sleep 1; touch late3' >/dev/null 2>&1 &\n")
    assert home.execute("q.sh", [], 30).status == 0
    time.sleep(1.5)
    assert not [name for name in names(place) if name.startswith("late")]
    home.close()


@BOTH
def test_a_script_that_removes_everything_still_has_its_output(place: Path, contain: bool) -> None:
    home = LocalHome(place, contain=contain)
    home.write("s.sh", "echo before; rm -rf .mlab-agent *; echo after; ln -s ../elsewhere .mlab-agent\n")
    (place.parent / "elsewhere").mkdir()
    with pytest.raises(HomeError, match=r"s\.sh: "):  # the outputs would go through the link
        home.execute("s.sh", [], 30)
    assert names(place.parent / "elsewhere") == []
    (place / PRIVATE).unlink()
    home.write("s.sh", "echo before; rm -rf .mlab-agent *; echo after\n")
    assert home.execute("s.sh", [], 30).stdout == "before\nafter\n"
    home.close()


def test_long_output_is_shown_in_part_and_kept_whole(place: Path) -> None:
    home = LocalHome(place, shown_chars=1000)
    home.write("p.py", "import sys\nfor i in range(5000): print('line', i)\nprint('the error', file=sys.stderr)\n")
    done = home.execute("p.py", [], 30)
    assert done.stdout.startswith("line 0\n")
    assert done.stdout.endswith("line 4999\n")
    assert "bytes left out" in done.stdout
    assert len(done.stdout) < 1100
    assert done.whole
    text = home.read(done.whole)
    assert "line 2500\n" in text
    assert text.endswith("=== stderr ===\nthe error\n\n")
    for _count in range(25):
        home.execute("p.py", [], 30)
    assert len(home.list(f"{PRIVATE}/outputs")) == 20
    home.close()


@BOTH
def test_no_secret_is_in_a_scripts_environment(place: Path, contain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-1")
    monkeypatch.setenv("INNOCENT", "prefix sk-real-2 suffix")
    monkeypatch.setenv("PLAIN", "kept")
    home = LocalHome(place, contain=contain, secrets=["sk-real-2"])
    home.write("e.py", "import os\nprint(os.environ)\n")
    said = home.execute("e.py", [], 30).stdout
    assert "sk-test-1" not in said
    assert "sk-real-2" not in said
    assert "kept" in said
    home.close()


def test_which_variables_are_passed() -> None:
    given_ = {
        "HF_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "s",
        "PATH": "p",
        "MONKEY": "m",
        "KEYBOARD": "k",
        "A": "has v in",
    }
    assert set(child_environment(given_)) == {"PATH", "MONKEY", "KEYBOARD", "A"}
    assert set(child_environment(given_, ["v"], ["HF_TOKEN"])) == {"PATH", "MONKEY", "KEYBOARD", "HF_TOKEN"}


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/usr/bin/setpriv").exists(), reason="needs root and setpriv")
def test_a_hidden_process_keeps_its_first_environment_from_its_children(tmp_path: Path) -> None:
    assert hide_this_process.__doc__
    code = (
        "import os, sys, subprocess\n{hide}"
        "done = subprocess.run(['cat', f'/proc/{{os.getpid()}}/environ'], capture_output=True, env={{}})\n"
        "print('sk-test' in done.stdout.decode())"
    )
    for hide, seen in (("", "True"), ("from mlab_agent.homes.running import hide_this_process as h; h()\n", "False")):
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
def test_read_only_files_are_as_before_after_a_script(place: Path, contain: bool, tmp_path: Path) -> None:
    (place / "data").mkdir()
    (place / "train.csv").write_text("truth")
    (place / "data" / "x").write_text("more truth")
    home = LocalHome(place, read_only=["train.csv", "data"], contain=contain, state=tmp_path / "state")
    home.write("spoil.py", SPOIL)
    done = home.execute("spoil.py", [], 30)
    assert done.status == 0, done.stderr
    assert (place / "train.csv").read_text() == "truth"
    assert (place / "data" / "x").read_text() == "more truth"
    assert not (place / "data").is_symlink()
    if contain:
        assert done.stdout.count("refused") == 3
        assert done.notes == ()
    else:
        assert "The script changed the read-only file train.csv; it was put back." in done.notes
        assert home.execute("spoil.py", [], 30).notes == done.notes
    home.close()


def test_a_file_without_a_copy_is_at_least_reported(place: Path, tmp_path: Path) -> None:
    with (place / "big.bin").open("wb") as big:
        big.truncate(65 << 20)
    home = LocalHome(place, read_only=["*.bin"], contain=False, state=tmp_path / "state")
    home.write("s.sh", "echo x >> big.bin\n")
    assert "there is no copy" in home.execute("s.sh", [], 30).notes[0]
    assert home.execute("s.sh", [], 30).notes
    home.close()


def test_the_answer_is_a_file(place: Path, tmp_path: Path) -> None:
    home = LocalHome(place)
    home.finish("42")
    home.finish("42")
    assert (place / "submission.txt").read_text() == "42"
    assert home.finished
    home.close()
    other = LocalHome(place, submission=tmp_path / "answer.txt")
    other.finish("43")
    assert (tmp_path / "answer.txt").read_text() == "43"
    assert other.score() is None
    other.close()


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_the_answer_goes_out_whatever_a_script_has_put_there(place: Path) -> None:
    outside = place.parent / "outside.txt"
    outside.write_text("kept")
    (place / "submission.txt").symlink_to(outside)
    home = LocalHome(place, read_only=["submission.txt"])
    home.finish("1")
    assert (place / "submission.txt").read_text() == "1"
    assert outside.read_text() == "kept"
    (place / "submission.txt").unlink()
    (place / "submission.txt" / "full").mkdir(parents=True)
    home.finish("2")
    assert (place / "submission.txt").read_text() == "2"
    home.close()


def tree(place: Path) -> dict[str, tuple[str, object, int]]:
    found: dict[str, tuple[str, object, int]] = {}
    for path in place.rglob("*"):
        name = str(path.relative_to(place))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()), 0)
        elif path.is_dir():
            found[name] = ("directory", None, 0)
        else:
            found[name] = ("file", path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found


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
    place, store = base / "ws", base / "store"
    place.mkdir()
    home = LocalHome(place, contain=False, state=base / "state")
    change(place, first)
    before, name = tree(place), home.snapshot(store)
    change(place, second)
    after, other = tree(place), home.snapshot(store)
    home.restore(store, name)
    assert tree(place) == before
    home.close()
    home = LocalHome(place, contain=False, state=base / "state")  # another process, later
    home.restore(store, other)
    assert tree(place) == after
    assert home.snapshot(store) == other
    home.close()


def change(place: Path, steps: list[tuple[str, str, bytes]]) -> None:
    for what, name, data in steps:
        path = place / name
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


def test_a_snapshot_costs_what_changed(place: Path, tmp_path: Path) -> None:
    home = LocalHome(place, read_only=["data"], left_out=["scratch"], snapshot_limit=1 << 20)
    (place / "data").mkdir()
    (place / "data" / "x").write_text("left out: read-only")
    (place / "scratch").mkdir()
    (place / "scratch" / "y").write_text("left out: asked for")
    (place / "deep" / "er").mkdir(parents=True)
    for number in range(50):
        (place / "deep" / "er" / f"{number}.txt").write_bytes(os.urandom(2000))
    with (place / "model.pt").open("wb") as model:
        model.truncate(2 << 20)
    store = tmp_path / "store"
    home.snapshot(store)
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    home.snapshot(store)
    assert sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) == size
    home.write("new.py", "x = 1\n")
    last = home.snapshot(store)
    grown = sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) - size
    assert grown < 1000
    (place / "deep" / "er" / "1.txt").unlink()
    home.restore(store, last)
    assert (place / "deep" / "er" / "1.txt").stat().st_size == 2000
    assert (place / "model.pt").stat().st_size == 2 << 20  # too long to be kept, and not touched either
    assert (place / "data" / "x").exists()
    assert (place / "scratch" / "y").exists()
    with pytest.raises(HomeError, match="not in the store"):
        home.restore(store, "0" * 64)
    home.close()


def test_a_damaged_end_of_the_index_is_ignored(place: Path, tmp_path: Path) -> None:
    home = LocalHome(place)
    home.write("a", "1")
    name = home.snapshot(tmp_path / "store")
    home.close()
    with (tmp_path / "store" / "index.jsonl").open("a") as index:
        index.write('["a", "torn')
    home = LocalHome(place)
    assert home.snapshot(tmp_path / "store") == name
    home.close()
