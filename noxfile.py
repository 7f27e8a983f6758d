"""The sessions of the repository: ``nox -l`` lists them.

Everything that imports torch shares one environment, ``.nox/shared``, made on first use and
renewed when the pins change; the sessions about one task are generated from ``tasks/*/task.toml``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Callable

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "tests"]

HERE = Path(__file__).parent
PINS = HERE / "constraints.txt"
SHARED = HERE / ".nox" / "shared"
RUNNING = ("torch", "triton", "numpy", "safetensors", "scipy")
PLUGINS = ("pytest-timeout", "pytest-xdist", "pytest-benchmark")
SUBMITTING = ("openai",)  # what submissions import beside
TESTING = ("pytest", *PLUGINS, "hypothesis", "hatchling", "editables", "nox", "ors-sdk")
SERVING = ("aiohttp", "openai", "openreward", "ors-sdk", "starlette", "uvicorn")
LINTING = ("ruff", "mypy", "nox", "pytest", *PLUGINS, "hypothesis", "numpy", "pydantic", "tomli-w", *SERVING)
PACKAGES = ("common[text,lm,paper]", "gateway", "environment", "agents/mlab[ors]")
SYSTEM = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}


@nox.session
def lint(session: nox.Session) -> None:
    """Check style with ruff and types with mypy, both as strict as they come."""
    session.install("-c", str(PINS), *LINTING)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run all tests of the core, of the tasks, and across packages."""
    if not session.posargs:  # else the first test that needs something waits for it, and its clients with it
        run(session, "re-bench", "prepare", "--profile", "cpu")
    # Four programs on two cores would get in each other's way with two threads each.
    options = session.posargs or ["-n", "4", "--dist", "worksteal"]
    run(session, "pytest", "-p", "no:benchmark", *options, env={"OMP_NUM_THREADS": "1"})


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Time what is hot: sandboxes, messages, logs, the start of the command, whole scorings."""
    run(session, "pytest", "bench", "--benchmark-group-by=group", *session.posargs)


@nox.session(venv_backend="none")
def serve(session: nox.Session) -> None:
    """Serve the tasks to agents over the Open Reward Standard."""
    run(session, "re-bench", "serve", *session.posargs)


@nox.session(venv_backend="none")
def score(session: nox.Session) -> None:
    """Check every task once: baseline about 0, reference about 1, all cheats refused."""
    run(session, "re-bench", "validate", *(session.posargs or ["--repeats", "1"]))


def session_for_task(verb: str, command: str, text: str) -> Callable[[str, str], None]:
    """Return what makes the session ``verb-TASK``, which runs ``re-bench command TASK`` with all further arguments."""

    def make(name: str, title: str) -> None:
        def session_of_task(session: nox.Session) -> None:
            run(session, "re-bench", command, name, *session.posargs)

        session_of_task.__doc__ = f"{text} of {name} ({title})."
        nox.session(name=f"{verb}-{name}", venv_backend="none")(session_of_task)

    return make


def make_task_sessions() -> None:
    """Make the sessions of every task that has a scorer."""
    makers = (
        session_for_task("score", "validate", "Score baseline, reference and cheats"),
        session_for_task("calibrate", "calibrate", "Measure and write back the anchors"),
    )
    for manifest in sorted(HERE.glob("tasks/*/task.toml")):
        if (manifest.parent / "score.py").is_file():
            for make in makers:
                make(manifest.parent.name, title_of(manifest))


def title_of(manifest: Path) -> str:
    """Return a task's title; a manifest that cannot be read is for the session itself to complain about."""
    try:
        return str(tomllib.loads(manifest.read_text(encoding="utf-8"))["title"])
    except (OSError, ValueError, KeyError):
        return "its manifest cannot be read"


def run(session: nox.Session, program: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run a program of the shared environment, which is made or renewed first."""
    need_system_programs(session)
    renew_shared_environment(session)
    session.run(str(SHARED / "bin" / program), *arguments, external=True, env=env)


def renew_shared_environment(session: nox.Session) -> None:
    """Make the shared environment unless it was made from the same pins and package files."""
    sources = (PINS, *(HERE / name.partition("[")[0] / "pyproject.toml" for name in PACKAGES), Path(__file__))
    made_from = hashlib.sha256(b"".join([sys.version.encode(), *(path.read_bytes() for path in sources)])).hexdigest()
    stamp = SHARED / "made-from"
    if stamp.is_file() and stamp.read_text() == made_from:
        return
    session.run(sys.executable, "-m", "venv", "--clear", str(SHARED), external=True)
    install = (str(SHARED / "bin" / "python"), "-m", "pip", "install", "--quiet", "-c", str(PINS))
    session.run(*install, *(pinned(name) for name in RUNNING), external=True)
    editable = (part for name in PACKAGES for part in ("-e", str(HERE / name)))
    session.run(*install, *SUBMITTING, *TESTING, *editable, external=True)
    stamp.write_text(made_from)


def pinned(name: str) -> str:
    """Return ``name==version`` as the file of pins has it."""
    for line in PINS.read_text().splitlines():
        if line.partition("==")[0] == name:
            return line
    raise LookupError(f"{PINS.name} has no pin for {name}")


def need_system_programs(session: nox.Session) -> None:
    """Install missing system programs where we may, else stop with the command to type."""
    packages = sorted({package for program, package in SYSTEM.items() if shutil.which(program) is None})
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        session.error(f"missing system programs; type: sudo apt-get install {' '.join(packages)} (or your equivalent)")
    session.run("apt-get", "update", "-qq", external=True)
    session.run("apt-get", "install", "-y", "-qq", *packages, external=True)


make_task_sessions()
