"""Prepare what a task needs before it can run.

As a program: ``python -m re_bench.task.prepare DIRECTORY --profile NAME [--instance N] [--into DIR [--drawing N] |
--worker]``.

A task that needs something has a module ``prepare.py`` in its package. ``prepare(profile, say)`` makes what the profile
needs in the cache of prepared data, nothing twice, and tells ``say`` what it does, line by line.
``lay_out(profile, target)`` puts the prepared files that all workspaces have into the directory ``target``. A task
whose workspaces differ also has ``personalise(profile, target, drawing=None)``, which writes there afterwards what is
its own: drawn by the system's randomness, or by the number ``drawing``, the same each time, for what has to be the same
each time it is made. One that has instances has ``prepare_instance(profile, instance, say)``, which prepares for one,
or raises a UsageError.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.instances import choose_instance
from re_bench.data.prepared import note_prepared
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, print_progress, run_program
from re_bench.task.discovery import open_task
from re_bench.task.prepare_worker import PERSONALISE, prepare_module, work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.task.discovery import Task


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, prepare, and lay out if asked to.

    The process ends with the status 2 if this cannot be done here, and 1 if it failed.

    Args:
        arguments: the command line; that of the process if None.
    """
    parser = argparse.ArgumentParser(prog="prepare.py", description="Make what a task needs, nothing twice.")
    parser.add_argument("directory", type=Path, help="the task's directory")
    parser.add_argument("--profile", required=True, help="the profile to prepare for")
    parser.add_argument("--instance", type=int, help="prepare for this one, and choose it")
    parser.add_argument("--drawing", type=int, help="with --into: draws what differs from workspace to workspace")
    after = parser.add_mutually_exclusive_group()
    after.add_argument("--into", metavar="DIR", type=Path, help="put a workspace's prepared files into this directory")
    after.add_argument("--worker", action="store_true", help="then answer requests on stdin; see prepare_worker.py")
    options = parser.parse_args(arguments)
    with cli_entry_point("prepare.py"):
        task = open_task(options.directory)
        task.profile(options.profile)

        def say(line: str) -> None:
            print_progress(f"{task.name}: {line}")

        if options.into is not None and not options.into.is_dir():
            raise UsageError(f"{options.into}: not a directory; give one that exists")
        if options.worker:
            work(task, options.profile)
            return
        with prepare_module(task) as module:
            if options.instance is None:
                module.prepare(options.profile, say)
            else:
                if task.profile(options.profile).instance != "chosen":
                    where = f"{task.name} has no instances to choose from in profile {options.profile}"
                    raise UsageError(f"{where}; leave --instance out")
                module.prepare_instance(options.profile, options.instance, say)
                choose_instance(task.name, options.profile, options.instance)
            note_prepared(task.name, options.profile, task.manifest.version)
            if options.into is not None:
                module.lay_out(options.profile, options.into)
                if hasattr(module, PERSONALISE):
                    drawing = {} if options.drawing is None else {"drawing": options.drawing}
                    module.personalise(options.profile, options.into, **drawing)


def run_preparation(
    task: Task, profile: str, into: Path | None = None, instance: int | None = None, drawing: int | None = None
) -> bool:
    """Run the task's ``prepare.py``, if it has one, in a process of its own; its output goes to our stderr.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        into: an existing directory that gets the prepared files of a workspace.
        instance: the instance to prepare for and to choose, if not the one that is chosen.
        drawing: what ``personalise`` draws from; None for the system's randomness.

    Returns:
        Whether it has one.

    Raises:
        UsageError: if it says that this cannot be prepared here.
        ReBenchError: if it fails.
    """
    if not task.preparer.is_file():
        return False
    where = ["--into", str(into)] if into is not None else []
    where += ["--instance", str(instance)] if instance is not None else []
    where += ["--drawing", str(drawing)] if drawing is not None else []
    program = ["-P", "-m", __name__, str(task.directory), "--profile", profile, *where]
    status, _nothing = run_program(program, capture=False)
    if status == UsageError.exit_status:
        raise UsageError(f"{task.name}: profile {profile} cannot be prepared here; the message of prepare.py is above")
    if status != 0:
        raise ReBenchError(
            f"{task.name}: prepare.py ended with exit status {status} in profile {profile}; its message is above"
        )
    return True


if __name__ == "__main__":
    main()
