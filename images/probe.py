"""Inspect an image from inside a container, and print the findings as JSON.

The caller runs ``python3 -`` in a container; stdin contains ``WANTED = {...}`` followed by the text of this file. The
keys of ``WANTED`` are: ``sizes`` (sizes of secret files), ``programs`` (programs to run), ``home`` (directory to list)
and ``absent`` (modules that must not be installed). This file imports only the standard library.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pwd
import stat
import subprocess
from pathlib import Path
from typing import Any

LEFT_OUT = ("/proc", "/sys", "/dev")


def files_below(top: str) -> list[str]:
    """Return all regular files below a directory, except in the kernel's file systems."""
    found = []
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if os.path.join(directory, name) not in LEFT_OUT]  # noqa: PTH118 - faster
        found += [os.path.join(directory, name) for name in files]  # noqa: PTH118
    return [path for path in found if stat.S_ISREG(os.lstat(path).st_mode)]


def sha256(path: str) -> str | None:
    """Return a file's checksum, or None if the file is not readable."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def of_sizes(sizes: list[int]) -> dict[str, str | None]:
    """Return, by path, the checksum of each file in the image that has one of these sizes."""
    wanted = set(sizes)
    return {path: sha256(path) for path in files_below("/") if os.lstat(path).st_size in wanted}


def home_of(top: str) -> dict[str, Any]:
    """Return the checksum, owner and writability of each file below ``top``."""
    return {
        path: {
            "sha256": sha256(path),
            "owner": pwd.getpwuid(os.lstat(path).st_uid).pw_name,
            "writable": os.access(path, os.W_OK),
        }
        for path in files_below(top)
    }


def failed_programs(programs: dict[str, list[str]]) -> dict[str, str]:
    """Return the error of each program that fails, by name."""
    failed = {}
    for name, command in programs.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd="/tmp")  # noqa: S108 - in a new container
        except OSError as error:
            failed[name] = str(error)
        else:
            if done.returncode != 0:
                failed[name] = done.stderr[-400:]
    return failed


def probe(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the findings about this image: user, files, packages and failures."""
    packages = {entry.metadata["Name"]: entry.version for entry in importlib.metadata.distributions()}
    return {
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "uid": os.geteuid(),
        "directory": str(Path.cwd()),
        "same_size": of_sizes(wanted["sizes"]),
        "home": home_of(wanted["home"]),
        "packages": packages,
        "failed": failed_programs(wanted["programs"]),
        "present": [name for name in wanted["absent"] if importlib.util.find_spec(name) is not None],
    }


if __name__ == "__main__":
    print(json.dumps(probe(WANTED)))  # type: ignore[name-defined] # noqa: F821 - the caller prepends it
