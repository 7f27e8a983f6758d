"""A directory as a workspace: snapshots, and what restoring them gives."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlab_agent.workspaces.files import WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace

if TYPE_CHECKING:
    from pathlib import Path


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
