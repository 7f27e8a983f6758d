"""The maintainer's picture of a log that the real ``inspect`` command wrote: small, and no other machine is asked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
TOOL = HERE.parent / "tools" / "screenshot.py"


def test_a_sample_in_inspect_view_is_a_small_picture(tmp_path: Path) -> None:
    if shutil.which("chromedriver") is None:
        pytest.skip("no chromium: apt-get install chromium chromium-driver")
    task = f"{HERE / 'support' / 'logged_task.py'}@made_up"
    command = [str(Path(sys.executable).with_name("inspect")), "eval", task, "-T", f"directory={tmp_path}"]
    command += ["--model", "mockllm/model", "--log-dir", str(tmp_path / "logs"), "--display", "none"]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=100)
    (log,) = (tmp_path / "logs").glob("*.eval")
    image = tmp_path / "image.png"
    options = ["--sample", "made_up/1", "--text", "answer"]
    subprocess.run([sys.executable, str(TOOL), str(log), str(image), *options], check=True, timeout=100)
    assert image.read_bytes().startswith(b"\x89PNG")
    assert 10_000 < image.stat().st_size < 150_000
    missing = subprocess.run([sys.executable, str(TOOL), "none.eval", str(image)], capture_output=True, check=False)
    assert (missing.returncode, missing.stderr) == (2, b"screenshot: none.eval: there is no such log\n")
