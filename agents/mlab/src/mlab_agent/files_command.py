"""The command ``files``: the workspace's files as they were after a step, from the snapshots of a run."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.settings import SettingsError
from mlab_agent.state import REWIND, count_steps, histories, last_snapshot, until_step
from mlab_agent.trace import TRACE_FILE, read_trace
from mlab_agent.workspaces.local import LocalFiles
from mlab_agent.workspaces.snapshots import STORE, Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlab_agent.state import Event

_DESCRIPTION = """\
List the workspace's files as they were after a step, print one of them, or write all of them into a directory; also
while the run goes on. What snapshots do not keep is not there: read-only and left-out files, and contents that are too
long.
"""


def files(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status.

    Raises:
        TraceError: if there is no run.
        SettingsError: if it has no such step or file, or the directory is not empty.
        WorkspaceError: if the snapshot is damaged.
    """
    parser = argparse.ArgumentParser("mlab-agent files", description=_DESCRIPTION)
    parser.add_argument("run", metavar="RUN", help="the run's directory")
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this file")
    parser.add_argument("--step", type=int, metavar="N", help="0 is before the first (default: the last one)")
    parser.add_argument("--out", metavar="DIR", help="write the files into a new or empty directory")
    parser.add_argument(
        "--set-aside", type=int, metavar="K", help="of the steps that the K-th resume --from-step set aside"
    )
    options = parser.parse_intermixed_args(arguments)
    if options.name and options.out:
        parser.error("give either NAME or --out DIR")
    run = Path(options.run)
    snapshot = _snapshot(read_trace(run / TRACE_FILE), options.step, options.set_aside)
    store = Store(run / STORE)
    if not store.exists:
        raise SettingsError(f"{run} has no snapshots that this version can read: an older version made the run")
    entries = store.entries(snapshot)
    if options.out:
        return _export(store, snapshot, Path(options.out))
    if options.name:
        name = options.name.removeprefix("./")
        if name not in entries:
            raise SettingsError(f"there was no file {name}; without a name, those that there were are listed")
        sys.stdout.buffer.write(store.get(entries[name].blob))
        sys.stdout.flush()
        return 0
    for name, entry in sorted(entries.items()):
        print(f"{name} -> {os.fsdecode(store.get(entry.blob))}" if entry.is_link else name)
    for name in store.too_long(snapshot):
        print(f"{name}  (too long to be kept)")
    return 0


def _snapshot(events: Sequence[Event], step: int | None, set_aside: int | None) -> str:
    all_histories = histories(events)
    if set_aside is not None and not 1 <= set_aside < len(all_histories):
        raise SettingsError(f"the run was resumed from an earlier step {len(all_histories) - 1} times, not {set_aside}")
    history = all_histories[-1 if set_aside is None else set_aside - 1]
    snapshot = None
    if step is None and set_aside is not None:  # what was there as the run went back
        rewinds = [event for event in events if event["kind"] == REWIND]
        snapshot = rewinds[set_aside - 1]["workspace"]
    try:
        past = history if step is None else until_step(history, step)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    snapshot = snapshot or last_snapshot(past)
    if snapshot is None:
        raise SettingsError(f"there is no snapshot yet; the run has {count_steps(history)} steps")
    return snapshot


def _export(store: Store, snapshot: str, directory: Path) -> int:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise SettingsError(f"{directory} is not empty: name a new directory")
    except OSError as error:
        raise SettingsError(f"{directory} cannot be written: {error.strerror}") from None
    store.restore(snapshot, LocalFiles(str(directory.resolve())), {}, limit=0)
    for name in store.too_long(snapshot):
        print(f"mlab-agent: {name} is missing: it was too long to be kept", file=sys.stderr)
    print(f"{len(store.entries(snapshot))} files are in {directory}", file=sys.stderr)
    return 0
