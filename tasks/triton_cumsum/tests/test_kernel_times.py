"""What a submission's process says of its kernels is taken down, and what it says wrong does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from re_bench.limits import Limits
from re_bench.sandbox.calls import SandboxedProcess
from re_bench.sandbox.spec import SandboxSpec
from re_bench.sandbox.unprotected import Unprotected
from triton_cumsum.measured.figures import claimed_kernels

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def claim(directory: Path, body: str) -> dict[str, Any]:
    module = directory / "runner.py"
    module.write_text(f"def profile(name: str, length: int) -> list:\n    {body}\n")
    with SandboxedProcess(Unprotected(), module, SandboxSpec(limits=Limits(wall_s=20))) as process:
        return claimed_kernels(process)


def test_the_longest_kernels_come_first_and_what_is_no_profile_is_an_error_in_the_log(tmp_path: Path) -> None:
    body = "return [dict(zip(('name', 'launches', 'us'), kernel)) for kernel in "
    body += "[('k' * 300, 1, 0.5), ('scan', 2, 250.5)] + [('short', 1, 0.25)] * 100]"
    kernels = claim(tmp_path, body)["kernels"]
    assert kernels[:2] == [
        {"name": "scan", "launches": 2, "us": 250.5},
        {"name": "k" * 200, "launches": 1, "us": 0.5},
    ]
    assert len(kernels) == 32
    assert "no CUPTI" in claim(tmp_path, "raise RuntimeError('no CUPTI')")["error"]
    assert "kernels" not in claim(tmp_path, "return [{'name': 'scan', 'launches': 1, 'us': -1.0}]")
