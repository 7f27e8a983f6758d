"""Whether the programs that tasks name are there and work: a compiler must compile a program that then runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from re_bench.processes import temporary_directory
from re_bench.runs.doctor.finding import Finding, Fix, Target, names

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIMIT_S = 30.0
_GREETING = "compiled"


class _Trial(NamedTuple):
    """A program that a compiler must be able to make; it prints :data:`_GREETING`."""

    file: str
    source: str


_TRIALS = {
    "rustc": _Trial("trial.rs", f'fn main() {{ println!("{_GREETING}"); }}\n'),
    "cc": _Trial("trial.c", f'#include <stdio.h>\nint main(void) {{ puts("{_GREETING}"); return 0; }}\n'),
}


def programs_of(targets: Iterable[Target]) -> dict[str, tuple[str, list[Target]]]:
    """Return what manifests name under ``programs``: by the program its Debian packages, and who needs it."""
    needed: dict[str, tuple[str, list[Target]]] = {}
    for target in targets:
        for program, packages in target.task.manifest.programs.items():
            needed.setdefault(program, (packages, []))[1].append(target)
    return needed


def check_program(program: str, packages: str, targets: Iterable[Target]) -> Finding:
    """Find out whether a program is on ``PATH``, answers, and, if it is a compiler that we know, compiles.

    Args:
        program: its name.
        packages: the Debian packages that bring it, separated by spaces.
        targets: what needs it.
    """
    blocks = names(targets)
    path = shutil.which(program)
    if path is None:
        return Finding(program, "problem", "not found", *_install(packages), blocks=blocks, fix=install(packages))
    problem = _problem(path, program)
    if problem is None:
        done = " compiles, and" if program in _TRIALS else ""
        return Finding(program, "ok", f"{_version(path)};{done} it runs ({path})")
    if is_rustup(path, problem):
        other = working_elsewhere(program, path)
        found = f"{path} is rustup without a toolchain"
        remedy = f"type: export PATH={Path(other).parent}:$PATH" if other else "type: rustup default stable"
        fix = None if other else Fix((("rustup", "default", "stable"),), as_root=False)
        return Finding(program, "problem", found, remedy, blocks, fix)
    return Finding(
        program, "problem", f"{path} does not work: {problem}", *_install(packages), blocks, install(packages)
    )


def install(packages: str) -> Fix | None:
    """Return how root installs Debian packages; None where there is no apt-get."""
    if shutil.which("apt-get") is None:
        return None
    return Fix((("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", *packages.split())))


def _install(packages: str) -> tuple[str]:
    known = shutil.which("apt-get") is not None
    return (f"type: sudo apt-get install {packages}" if known else f"install {packages} (so Debian calls it)",)


def is_rustup(path: str, problem: str) -> bool:
    """Tell whether a program that does not work is rustup's stand-in for one that is not installed."""
    return Path(path).resolve().name.startswith("rustup") or "rustup" in problem


def working_elsewhere(program: str, path: str) -> str | None:
    """Return a program of this name that works, in a later directory of ``PATH`` than ``path``."""
    for directory in os.get_exec_path():
        other = shutil.which(program, path=directory)
        if other and other != path and _problem(other, program) is None:
            return other
    return None


def _version(path: str) -> str:
    status, output = _run(path, "--version")
    return output.partition("\n")[0] if status == 0 and output else Path(path).name


def _problem(path: str, program: str) -> str | None:
    """Return in a line why a program does not do what it is for, or None."""
    trial = _TRIALS.get(program)
    if trial is None:
        return None if os.access(path, os.X_OK) else "it cannot be run"
    with temporary_directory("re-bench-doctor-") as directory:
        (directory / trial.file).write_text(trial.source, encoding="ascii")
        status, output = _run(path, "-o", "trial", trial.file, directory=directory)
        if status == 0:
            status, output = _run("./trial", directory=directory)
            return None if (status, output) == (0, _GREETING) else f"what it compiles does not run: {output}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return told or f"it ended with exit status {status}"


def _run(program: str, *words: str, directory: Path | None = None) -> tuple[int, str]:
    try:
        done = subprocess.run(
            [program, *words],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, f"error: {error}"
    return done.returncode, done.stdout.strip()
