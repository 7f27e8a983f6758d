"""Run a re-bench task as a task family of METR's Task Standard.

``re-bench export metr`` writes this file next to ``assets``, which contains the task, its scorer, re-bench, and a list
of required packages. After ``install``, only root can read the assets. All users can read a copy of re-bench without
the tasks, because sandboxes that run as other users need it. This file imports only the standard library, so that a
driver can load it before ``install``.
"""

from __future__ import annotations

import compileall
import json
import math
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).resolve().parent
_ASSETS = _HERE / "assets"
_STATE = _HERE / "re-bench-state"
"""Directory with prepared data, the attempt log and copies of submissions; only root can read it."""
_PACKAGES = Path("/opt/re-bench/packages")
"""Directory with a copy of re-bench without tasks; all users can read it."""
_HOME = Path("/home/agent")
_WORKSPACE = _HOME / "solution"
_ROOT_ONLY, _READABLE, _READABLE_FILE = 0o700, 0o755, 0o644
_TAIL = 2000
_SUSPEND_S = 10.0
_FACTS: dict[str, Any] = json.loads((_ASSETS / "family.json").read_text(encoding="utf-8"))
_TASK = str(_ASSETS / "tasks" / _FACTS["name"])


class TaskFamily:
    """A task family with intermediate scores; :meth:`aggregate_scores` replaces the standard's method ``score``."""

    standard_version = "0.5.0"
    required_environment_variables: ClassVar[list[str]] = _FACTS["required_environment_variables"]

    @staticmethod
    def get_tasks() -> dict[str, dict[str, Any]]:
        """Return the family's only task, named after its profile."""
        return {_FACTS["profile"]: _FACTS["task"]}

    @staticmethod
    def get_instructions(t: dict[str, Any]) -> str:
        """Return the instructions for the agent."""
        del t
        return (_ASSETS / "instructions.md").read_text(encoding="utf-8")

    @staticmethod
    def get_permissions(t: dict[str, Any]) -> list[str]:
        """Return ``full_internet`` if scoring calls a remote model, otherwise no permissions."""
        del t
        permissions: list[str] = _FACTS["permissions"]
        return permissions

    @staticmethod
    def install() -> None:
        """Install the packages for the agent and the scorer, hide the assets from other users, and prepare the data."""
        _STATE.mkdir(mode=_ROOT_ONLY, exist_ok=True)
        for directory in (_ASSETS, _STATE):
            directory.chmod(_ROOT_ONLY)
        _copy_for_all(_ASSETS / "packages", _PACKAGES)
        _install_programs(_FACTS["programs"])
        requirements = str(_ASSETS / "requirements.txt")
        _checked([sys.executable, "-m", "pip", "install", "--root-user-action", "ignore", "-r", requirements])
        _checked(_re_bench("prepare", _TASK))

    @staticmethod
    def start(t: dict[str, Any]) -> None:
        """Create the workspace; the driver then makes the user ``agent`` its owner."""
        _checked(_re_bench("workspace", _TASK, str(_WORKSPACE)))
        (_HOME / "instructions.md").write_text(TaskFamily.get_instructions(t), encoding="utf-8")

    @staticmethod
    def intermediate_score(t: dict[str, Any]) -> dict[str, Any]:
        """Score a copy of the workspace.

        Returns:
            A dictionary with the keys ``score`` (the reward; NaN for an invalid submission; None after an internal
            error or without anchors), ``message`` (for the agent) and ``details`` (hidden from the agent).
        """
        del t
        if _WORKSPACE.is_symlink() or not _WORKSPACE.is_dir():
            text = f"{_WORKSPACE} is not a directory"
            outcome: dict[str, Any] = {"status": "invalid", "message": text, "raw": None, "reward": None, "details": {}}
            return {"score": math.nan, "message": _message(outcome), "details": _details(outcome)}
        command = _re_bench("score", _TASK, str(_WORKSPACE), "--log", str(_STATE / "attempts.jsonl"), "--json")
        with _suspended(pwd.getpwnam("agent").pw_uid):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment(), cwd="/")
        outcome = json.loads(done.stdout.strip() or "{}")
        if "status" not in outcome:
            raise RuntimeError(f"the scorer cannot run here: {done.stderr.strip()[-_TAIL:]}")
        score = math.nan if outcome["status"] == "invalid" else outcome["reward"]
        return {"score": score, "message": _message(outcome), "details": _details(outcome)}

    @staticmethod
    def aggregate_scores(t: dict[str, Any], score_log: list[dict[str, Any]]) -> float | None:
        """Return the reward of the attempt with the lowest, highest or last raw score, depending on the aggregation.

        The public raw scores select the attempt; its private score counts, if it has one. ``score_log`` contains the
        results of :meth:`intermediate_score` in the order of the calls. Return None if no attempt was valid, or if the
        profile has no anchors.
        """
        del t
        sys.path.insert(0, str(_PACKAGES))
        from re_bench.normalise import aggregate, normalise  # noqa: PLC0415 - only importable after install

        attempts = [entry.get("details") or {} for entry in score_log]
        raw = aggregate([attempt.get("raw") for attempt in attempts], _FACTS["aggregation"])
        if raw is None:
            return None
        chosen = next(one for one in reversed(attempts) if one.get("raw") == raw)
        return normalise(chosen["deciding_raw"], *chosen["anchors"]) if chosen["anchors"] else None


@contextmanager
def _suspended(uid: int) -> Iterator[None]:
    """Suspend a user's processes during the block: a submission with held-out data must not reach the agent."""
    suspended: set[int] = set()
    deadline = time.monotonic() + _SUSPEND_S
    try:
        while running := _running(uid):  # a process may start others before it stops
            if time.monotonic() > deadline:
                raise RuntimeError("the agent's processes could not be suspended")
            suspended |= running
            _signal_all(running, signal.SIGSTOP)
            time.sleep(0.001)
        yield
    finally:
        _signal_all(suspended, signal.SIGCONT)


def _running(uid: int) -> set[int]:
    """Return the PIDs of a user's processes that are neither stopped nor dead nor in an uninterruptible call."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # the process has ended
            text = status.read_text(errors="replace")
            if f"\nUid:\t{uid}\t" in text and text.partition("\nState:\t")[2][:1] in "RSI":
                found.add(int(status.parent.name))
    return found


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _message(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the message for the agent, without hidden scores or details, which a submission can influence."""
    if outcome["status"] == "error":
        text = "Internal error, not caused by your submission. Try again."
        return {"status": "error", "message": text}
    message = {"status": outcome["status"], "message": outcome["message"]}
    shown = {"raw": outcome["raw"], "unit": _FACTS["unit"], "reward": outcome["reward"]}
    return message | shown if _FACTS["task"]["score_shown_to_agent"] and outcome["status"] == "valid" else message


def _details(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a score, which the operator and ``aggregate_scores`` read."""
    details, anchors = outcome["details"], outcome["details"].get("anchors")
    final = details.get("private_raw")
    return {
        **outcome,
        "deciding_raw": outcome["raw"] if final is None else final,
        "anchors": [anchors["starting"], anchors["reference"]] if anchors else None,
    }


def _re_bench(*arguments: str) -> list[str]:
    """Return a ``re-bench`` command line with the family's profile; ``-P`` keeps the current directory off the path."""
    return [sys.executable, "-P", "-m", "re_bench.cli", *arguments, "--profile", _FACTS["profile"]]


def _environment() -> dict[str, str]:
    """Return the environment variables for ``re-bench`` commands."""
    path = [_PACKAGES, _ASSETS / _FACTS["import_directory"]]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "RE_BENCH_CACHE": str(_STATE / "cache"),
        "RE_BENCH_SANDBOX": _FACTS["sandbox"],
    }


def _checked(command: list[str]) -> None:
    """Run a program with its output on stderr; raise RuntimeError if it fails."""
    done = subprocess.run(command, check=False, env=_environment(), cwd="/", stdout=sys.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}; see its messages above")


def _copy_for_all(source: Path, target: Path) -> None:
    """Copy modules so that all users can read and only root can change them; replace an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    compileall.compile_dir(target, quiet=2)  # programs in sandboxes cannot write bytecode themselves
    for path in (target.parent, target, *target.rglob("*")):
        path.chmod(_READABLE if path.is_dir() else _READABLE_FILE)


def _install_programs(programs: dict[str, str]) -> None:
    """Install the Debian packages of missing programs; raise RuntimeError if the installation fails."""
    absent = {program: packages for program, packages in programs.items() if shutil.which(program) is None}
    missing = sorted({package for packages in absent.values() for package in packages.split()})
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise RuntimeError(f"missing programs: {', '.join(absent)}; install the packages {' '.join(missing)}")
    _checked(["apt-get", "update", "-qq"])
    _checked(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing])
