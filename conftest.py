"""Settings of all tests, and a server of the tasks for those that need one."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest_plugins = ["re_bench.testing"]

# How long an example takes, a busy machine decides.
settings.register_profile("re-bench", parent=settings.default, deadline=None)
settings.load_profile("re-bench")

# What a shell starts in the background ignores interrupts, and so would every program that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


OTHER_MARKERS = ("integration", "slow", "browser")
TOOLS = {
    "harbor": "integrations/harbor/",
    "inspect": "integrations/inspect/",
    "landlock": "integrations/landlock/",
    "metr": "integrations/metr/",
    "ray": "_ray",
    "trl": "test_trl.py",
}
"""Markers of tests that need a foreign tool, by a part of the paths of their files."""
INTEGRATION_FILE = "\npytestmark = pytest.mark.integration\n"


def pytest_configure(config: pytest.Config) -> None:
    """Prevent unit tests from starting programs."""
    if config.option.markexpr == "unit":
        sys.addaudithook(_refuse_programs)


def _refuse_programs(event: str, _arguments: object) -> None:
    if event in {"subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"} and "PYTEST_CURRENT_TEST" in os.environ:
        raise AssertionError("a unit test starts a program; mark it with pytest.mark.integration")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of integration tests for `-m unit`: many import torch, which takes seconds."""
    if config.option.markexpr != "unit" or collection_path.suffix != ".py":
        return None
    return True if INTEGRATION_FILE in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the foreign tool that they need, and all that are not marked otherwise as unit tests."""
    for item in items:
        for name, part in TOOLS.items():
            if part in item.path.as_posix():
                item.add_marker(name)
        if not any(item.get_closest_marker(name) for name in OTHER_MARKERS):
            item.add_marker("unit")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what programs remember, such as the last validations, out of the user's directory for state."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def ors_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the server keeps what it knows of its sessions."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def ors_tasks() -> tuple[str, ...]:
    """Return the tasks that the server serves: those of all tests that use it, since others take long to prepare."""
    return ("ai_rd_small_scaling_law", "ai_rd_triton_cumsum")


@pytest.fixture(scope="session")
def ors_url(ors_state: Path, ors_tasks: tuple[str, ...]) -> Iterator[str]:
    """Return the address of re-bench's server; tests of packages that need it only sometimes are skipped without it."""
    for module in ("openreward", "re_bench_server"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    if shutil.which("bwrap") is None:
        pytest.skip("the server has no sandbox without bubblewrap")
    command = [sys.executable, "-m", "re_bench.cli", "serve"]
    command += ["--port", "0", "--profile", "cpu", "--state", str(ors_state)]
    command += [f"--task={task}" for task in ors_tasks]
    environment = {name: value for name, value in os.environ.items() if "KEY" not in name}
    with (ors_state / "log").open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
    try:
        yield _address(process, ors_state / "log")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that the server logs once it serves."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("{") and (event := json.loads(line))["event"] == "serving":
                return str(event["address"])
        time.sleep(0.1)
    pytest.fail(f"the server did not start: {log.read_text()}")
