"""What a session's sandbox is shown of ours: the supervisor, its socket, the next command, and a user's names."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from re_bench.guest import ipc, truncate
from re_bench_environment import inside
from re_bench_environment.inside import supervisor
from re_bench_environment.inside.bash import COMMAND, EVALUATE

__all__ = ["CHANNEL", "PROGRAM", "etc", "hand_over", "lay_out"]

CHANNEL = "channel"
"""The name of the socket."""
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import re_bench_environment.inside.supervisor as it; it.main()"
)
"""What Python is to run inside, with the directory of ours as its first argument."""

_TOPS = {Path(ipc.__file__).parents[2], Path(supervisor.__file__).parents[2]}
_READABLE = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_FOR_ALL = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH


def lay_out(place: Path) -> None:
    """Make the directory ``place``, which all users may read, with the supervisor in it."""
    place.mkdir()
    place.chmod(_FOR_ALL)
    evaluate = Path(f"{place}{EVALUATE}")
    # The command's place inside is not known here, but it is beside this file.
    evaluate.write_text(f'\\builtin eval "$(<"${{BASH_SOURCE%/*}}{COMMAND}")"\n', encoding="ascii")
    evaluate.chmod(_READABLE)
    modules = [Path(ipc.__file__), Path(truncate.__file__), *Path(inside.__file__).parent.glob("[a-z]*.py")]
    for source in modules:
        # Compiled before, it starts in half the time.
        for file in (source, Path(importlib.util.cache_from_source(str(source)))):
            top = next(top for top in _TOPS if file.is_relative_to(top))
            _copy(file, place, file.relative_to(top))


def etc(place: Path, user: int, home: str) -> dict[str, Path]:
    """Write files of ``/etc`` that name the sandbox's user and host, and return where they are to be shown."""
    lines = {
        "passwd": f"root:x:0:0::/root:/bin/sh\nagent:x:{user}:{user}::{home}:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{user}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
    }
    shown = {}
    for name, text in lines.items():
        path = place / f"etc-{name}"
        path.write_text(text, encoding="ascii")
        path.chmod(_READABLE)
        shown[f"/etc/{name}"] = path
    return shown


def hand_over(workspace: Path, user: int | None) -> None:
    """Let the sandbox's user change the workspace and all in it: by owning it, or without a ``user`` as all may."""
    for place, directories, files in os.walk(workspace):
        for name in (".", *directories, *files):
            path = os.path.join(place, name)  # noqa: PTH118 - a workspace may hold a hundred thousand files
            with suppress(FileNotFoundError):
                if user is not None:
                    os.lchown(path, user, user)
                elif not os.path.islink(path):  # noqa: PTH114 - as above
                    mode = os.stat(path).st_mode  # noqa: PTH116 - as above
                    os.chmod(path, mode | 0o666 | (0o111 if stat.S_ISDIR(mode) else 0))  # noqa: PTH101, S103 - as above


def _copy(file: Path, place: Path, name: Path) -> None:
    target = place / name
    for parent in reversed(target.relative_to(place).parents):
        directory = place / parent
        directory.mkdir(exist_ok=True)
        directory.chmod(_FOR_ALL)
    with suppress(FileNotFoundError):  # what was compiled is not always kept
        shutil.copy2(file, target)
        target.chmod(_READABLE)
