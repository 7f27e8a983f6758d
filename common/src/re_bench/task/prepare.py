"""What a task needs before it can run, and the program that every task's ``prepare.py`` becomes.

A task's ``prepare.py`` defines two functions and ends with::

    if __name__ == "__main__":
        main(prepare, lay_out, Path(__file__).parent)

``prepare(profile, say)`` makes what the profile needs in the cache of prepared data, nothing twice, and tells ``say``
what it does, line by line. ``lay_out(profile, target)`` copies the prepared files of a workspace into ``target``.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, run_program
from re_bench.task.discovery import Task, open_task
from re_bench.task.manifest import PROFILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["main", "run_preparation"]


def main(
    prepare: Callable[[str, Callable[[str], None]], None],
    lay_out: Callable[[str, Path], None],
    directory: Path,
    arguments: Sequence[str] | None = None,
) -> NoReturn:
    """Be a task's ``prepare.py``: read the command line, prepare, lay out if asked to, exit with a status.

    The status is 0 when it is done, 2 if it cannot be done here, 1 if it failed.

    Args:
        prepare: the task's function that makes what a profile needs.
        lay_out: the task's function that copies prepared files into a workspace.
        directory: the task's directory.
        arguments: the command line; that of the process if None.
    """
    with cli_entry_point("prepare.py"):
        task = open_task(directory)
        options = _parse(task, arguments)
        task.profile(options.profile)
        if options.into is not None and not options.into.is_dir():
            raise UsageError(f"{options.into}: not a directory; give one that exists")
        with _naming_missing_packages(task):
            prepare(options.profile, lambda line: print(f"{task.name}: {line}", file=sys.stderr, flush=True))
            if options.into is not None:
                lay_out(options.profile, options.into)
    sys.exit(0)


def _parse(task: Task, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="prepare.py", description=f"Make what {task.name} needs, nothing twice.")
    parser.add_argument("--profile", choices=PROFILES, required=True, help="the profile to prepare for")
    parser.add_argument("--into", metavar="DIR", type=Path, help="put a workspace's prepared files into this directory")
    return parser.parse_args(arguments)


@contextmanager
def _naming_missing_packages(task: Task) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = f"pip install -c constraints.txt -e common -e tasks/{task.name}"
        raise UsageError(f"{task.name}: the package {error.name} is missing; run: {remedy}") from None


def run_preparation(task: Task, profile: str, into: Path | None = None) -> bool:
    """Run the task's ``prepare.py``, if it has one, in a process of its own; its output goes to our stderr.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        into: an existing directory that gets the prepared files of a workspace.

    Returns:
        Whether it has one.

    Raises:
        UsageError: if it says that this cannot be prepared here.
        ReBenchError: if it fails.
    """
    if not task.preparer.is_file():
        return False
    where = ["--into", str(into)] if into is not None else []
    program = ["-P", "-m", __name__, str(task.preparer), "--profile", profile, *where]
    status, _nothing = run_program(program, capture=False)
    if status == UsageError.exit_status:
        raise UsageError(f"{task.name}: profile {profile} cannot be prepared here; the message of prepare.py is above")
    if status != 0:
        raise ReBenchError(
            f"{task.name}: prepare.py ended with exit status {status} in profile {profile}; its message is above"
        )
    return True


def _run(program: Path) -> None:
    """Run a ``prepare.py`` as Python would, but for what it imports at its top: a missing package is one line."""
    with cli_entry_point(program.name), _naming_missing_packages(open_task(program.parent)):
        sys.path.insert(0, str(program.parent))
        runpy.run_path(str(program), run_name="__main__")


if __name__ == "__main__":
    del sys.argv[0]
    _run(Path(sys.argv[0]))
