"""What agents have to profile their kernels: it says what it cannot do, and reads what the profilers left."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

TASK = Path(__file__).parents[1]
NO_PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
)


@pytest.fixture
def kernel_profile() -> Any:
    spec = importlib.util.spec_from_file_location("kernel_profile", TASK / "starter" / "kernel_profile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install_ncu(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program called ``ncu`` on the PATH."""
    (directory / "ncu").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def test_a_profile_takes_a_gpu(tmp_path: Path) -> None:
    for name in ("check.py", "kernel_profile.py"):
        shutil.copy(TASK / "starter" / name, tmp_path)
    command = [sys.executable, str(tmp_path / "check.py"), "--profile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--profile needs --device cuda" in done.stderr


def test_nsight_compute_is_asked_first(
    kernel_profile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_ncu(tmp_path, monkeypatch, 'echo "Section: arguments $@"')
    assert kernel_profile.write_profile(tmp_path / "profile.txt") == 0
    text = (tmp_path / "profile.txt").read_text()
    assert text.startswith("Section: arguments --clock-control none --profile-from-start off --section SpeedOfLight ")
    assert text.endswith(f"{kernel_profile.__file__}\n")
    assert capsys.readouterr().out == f"profile by Nsight Compute: {tmp_path / 'profile.txt'}\n"


def test_where_none_is_permitted_the_reasons_are_told(
    kernel_profile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> str:
        raise kernel_profile.NoProfileError("CUPTI recorded no work on the GPU")

    install_ncu(tmp_path, monkeypatch, f"echo '==PROF== Connected'; echo '{NO_PERMISSION}'; exit 1")
    monkeypatch.setattr(kernel_profile, "by_torch", refuse)
    assert kernel_profile.write_profile(tmp_path / "profile.txt") == 1
    assert capsys.readouterr().out.splitlines() == [
        f"no profile by Nsight Compute: {NO_PERMISSION}",
        "no profile by torch.profiler: CUPTI recorded no work on the GPU",
        "no profile was written; the GPU's owner decides who may profile on it",
    ]
    assert not (tmp_path / "profile.txt").exists()


def test_the_table_has_each_kernel_and_its_time_in_a_call(kernel_profile: Any) -> None:
    shape = {"grid": [12207, 1, 1], "block": [128, 1, 1], "registers per thread": 64, "shared memory": 512}
    events = [{"name": "scan", "dur": 250.0, "args": shape}] * 5 + [{"name": "Memset", "dur": 1.0}] * 10
    lines = kernel_profile.describe("NVIDIA H200", events).splitlines()
    assert "252.0 us of work on the GPU each, 3175 GB/s if each element" in lines[0]
    assert [line.split() for line in lines[3:]] == [
        ["250.0", "1", "[12207,1,1]", "[128,1,1]", "64", "512", "scan"],
        ["2.0", "2", "-", "-", "-", "-", "Memset"],
    ]
