"""The files of ours that a session's sandbox shows: the supervisor, its socket, the next command, and ``/etc``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from re_bench.guest import ipc, json_depth, truncate
from re_bench_server import guest
from re_bench_server.guest.bash import COMMAND, EVALUATE

CHANNEL = "channel"
"""The name of the socket."""
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "import re_bench_server.guest.supervisor as supervisor; supervisor.main()"
)
"""The program of Python inside, with the directory of these files as its first argument."""

_GUEST = Path(guest.__file__).parent
_PACKAGE_PARENTS = {Path(ipc.__file__).parents[2], _GUEST.parents[1]}
_READABLE = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_ACCESSIBLE = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH


def lay_out(directory: Path) -> None:
    """Make ``directory``, which all users may read, with the supervisor in it."""
    directory.mkdir()
    directory.chmod(_ACCESSIBLE)
    evaluate = Path(f"{directory}{EVALUATE}")
    # The path of the command inside is not known here, but it is beside this file.
    evaluate.write_text(f'\\builtin eval "$(<"${{BASH_SOURCE%/*}}{COMMAND}")"\n', encoding="ascii")
    evaluate.chmod(_READABLE)
    modules = [*map(Path, (ipc.__file__, json_depth.__file__, truncate.__file__)), *_GUEST.glob("[a-z]*.py")]
    for source in modules:
        # With its compiled form beside it, it starts in half the time.
        for file in (source, Path(importlib.util.cache_from_source(str(source)))):
            parent = next(parent for parent in _PACKAGE_PARENTS if file.is_relative_to(parent))
            _copy(file, directory, file.relative_to(parent))


def write_command(directory: Path, command: str) -> None:
    """Write the next command into the directory made by :func:`lay_out`.

    Raises:
        OSError: if it cannot be written.
    """
    data = command.encode(errors="replace")
    # Some file systems write a file to the disk at once that was emptied first.
    file = os.open(f"{directory}{COMMAND}", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.fchmod(file, 0o644)
        while data:
            data = data[os.write(file, data) :]
        os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
    finally:
        os.close(file)


def write_etc(directory: Path, user: int, home: str) -> dict[str, Path]:
    """Write files of ``/etc`` that name the sandbox's user and host; return them by their paths inside.

    What names the system is the machine's own, whose programs the sandbox shows.
    """
    contents = {
        "passwd": f"root:x:0:0::/root:/bin/sh\nagent:x:{user}:{user}::{home}:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{user}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
    }
    system = Path("/etc/os-release")
    files = {str(system): system.resolve()} if system.is_file() else {}
    for name, text in contents.items():
        path = directory / f"etc-{name}"
        path.write_text(text, encoding="ascii")
        path.chmod(_READABLE)
        files[f"/etc/{name}"] = path
    return files


def hand_over(workspace: Path, user: int | None) -> None:
    """Let the sandbox's user change the workspace and all in it: as its owner, or without a ``user`` as everybody.

    Files of ours with other names besides are shared with other workspaces, and stay ours.
    """
    for parent, directories, files in os.walk(workspace):
        for name in (".", *directories, *files):
            path = os.path.join(parent, name)  # noqa: PTH118 - a workspace may hold a hundred thousand files
            with suppress(FileNotFoundError):
                if user is not None:
                    status = os.lstat(path)
                    if not (stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and status.st_uid == os.geteuid()):
                        os.lchown(path, user, user)
                elif not os.path.islink(path):  # noqa: PTH114 - as above
                    mode = os.stat(path).st_mode  # noqa: PTH116 - as above
                    os.chmod(path, mode | 0o666 | (0o111 if stat.S_ISDIR(mode) else 0))  # noqa: PTH101, S103 - as above


def _copy(file: Path, directory: Path, name: Path) -> None:
    target = directory / name
    for parent in reversed(target.relative_to(directory).parents):
        path = directory / parent
        path.mkdir(exist_ok=True)
        path.chmod(_ACCESSIBLE)
    with suppress(FileNotFoundError):  # a compiled form is not always kept
        shutil.copy2(file, target)
        target.chmod(_READABLE)
