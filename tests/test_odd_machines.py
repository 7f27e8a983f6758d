"""Commands on machines that are unusual but common: a message in one line and the documented status, or a score."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

RE_BENCH = (sys.executable, "-m", "re_bench.cli")
LONG = "x" * 120


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("odd") / "workspace"
    command = [*RE_BENCH, "workspace", "small_scaling_law", str(directory), "--profile", "cpu"]
    subprocess.run(command, check=True, capture_output=True)
    return directory


def scored(workspace: Path, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Score the workspace after a line of shell commands, with other environment variables."""
    command = f'{shell or ":"}; exec "$@"'
    arguments = [*RE_BENCH, "score", "small_scaling_law", str(workspace), "--profile", "cpu"]
    variables = {name: value for name, value in {**os.environ, **environment}.items() if value}
    return subprocess.run(
        ["sh", "-c", command, "sh", *arguments], capture_output=True, text=True, env=variables, check=False
    )


SCORES: dict[str, tuple[str, dict[str, str]]] = {
    "umask 077": ("umask 077", {}),
    "closed stdin": ("exec <&-", {}),
    "closed stderr": ("exec 2>&-", {}),
    "all streams but stdout closed": ("exec <&- 2>&-", {}),
    "unknown locale": ("", {"LANG": "xx_YY.nonsense", "LC_ALL": "xx_YY.nonsense"}),
    "ASCII": ("", {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "narrow terminal": ("", {"COLUMNS": "1"}),
    "proxies that do not exist": ("", {"HTTP_PROXY": "nonsense", "HTTPS_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://x"}),
    "certificates that do not exist": ("", {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": "/nonexistent"}),
    "TMPDIR that does not exist": ("", {"TMPDIR": "/nonexistent"}),
    "time zone that does not exist": ("", {"TZ": "Nowhere/Atall"}),
    "home directory that cannot be written": ("", {"HOME": "/proc", "XDG_CACHE_HOME": "", "XDG_STATE_HOME": ""}),
    "long TMPDIR": (f'mkdir -p "$PWD/{LONG}"; export TMPDIR="$PWD/{LONG}"', {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SCORES)
def test_a_score_is_made(workspace: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shell, environment = SCORES[name]
    done = scored(workspace, shell, **environment)
    assert "raw 0.378" in done.stdout, done.stderr
    assert done.returncode == 0


MESSAGES: dict[str, tuple[str, dict[str, str], str]] = {
    "working directory is gone": ("mkdir gone; cd gone; rmdir ../gone", {}, "the working directory no longer exists"),
    "few open files": ("ulimit -n 64", {}, "failed to set the NOFILE resource limit"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_says_what_is_wrong(
    workspace: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell, environment, message = MESSAGES[name]
    done = scored(workspace, shell, **environment)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_an_unusable_cache_is_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "RE_BENCH_CACHE": "/proc/cache"}
    command = [*RE_BENCH, "prepare", "small_scaling_law", "--profile", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert "cannot be created (No such file or directory); set RE_BENCH_CACHE to a writable directory" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


READS_ALL = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
"""Options with which a user can read a checkout wherever it is; such a user has no sandbox."""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv (util-linux)")
@pytest.mark.parametrize(("command", "status"), [("doctor", 1), ("prepare", 2), ("calibrate", 2)])
def test_a_user_without_an_account_and_home_is_told_what_to_set(tmp_path: Path, command: str, status: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"HOME", "RE_BENCH_CACHE"}}
    user = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", *READS_ALL]
    done = subprocess.run(
        [*user, *RE_BENCH, command, "small_scaling_law", "--profile", "cpu"],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "this user has no home directory; set RE_BENCH_CACHE to a writable directory" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == status


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    """Return a directory in which no program can be executed."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("NOT TESTED: only root can mount a file system")
    directory = tmp_path / "noexec"
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", str(directory)], check=False)
    if mounted.returncode != 0:
        pytest.skip("NOT TESTED: this container cannot mount a file system")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def test_doctor_names_a_directory_without_execution(noexec: Path) -> None:
    command = [*RE_BENCH, "doctor", "triton_cumsum", "rust_codecontests", "--profile", "cpu"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(noexec)}, check=False
    )
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if line[:1].isalpha() and len(line.split()) > 1}
    assert lines["cc"].startswith("ok")
    assert f"compiled programs cannot run in {noexec}, which is mounted noexec" in lines["rustc"]
    assert "cannot run here: rust_codecontests\n" in done.stdout
