"""The doctor's checks report problems and their remedies."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from re_bench.doctor import (
    Target,
    bubblewrap_obstacle,
    check_packages,
    check_program,
    check_room,
    check_sandbox,
    check_source,
    choose_targets,
    landlock_abi,
    reasons,
    user_namespace_obstacle,
)
from re_bench.errors import ReBenchError
from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench.task.discovery import TaskFolder

pytestmark = pytest.mark.integration

ROOT = os.geteuid() == 0
NO_COMPILER = "#!/bin/sh\ntest $1 = --version && echo cc 1.0 && exit\n"


@pytest.mark.parametrize(
    ("name", "script", "found"),
    [
        ("cc", f"{NO_COMPILER}echo 'trial.c:1: fatal error: stdio.h: No such file' >&2; exit 1\n", "stdio.h: No such"),
        ("cc", f"{NO_COMPILER}echo '#!/bin/false' > trial; chmod +x trial\n", "the compiled program does not run"),
        ("cc", "#!/bin/sh\nkill -9 $$\n", "exit status -9"),
        ("rustc", "#!/bin/sh\necho 'error: rustup could not choose a version' >&2; exit 1\n", "is rustup without a"),
    ],
)
def test_program_that_does_not_work_is_a_problem(
    made_up: TaskFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, name: str, script: str, found: str
) -> None:
    assert check_program("cc", "gcc", []).status == "ok"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).write_text(script)
    (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    finding = check_program(name, "the package", [Target(made_up, "cpu")])
    assert (finding.status, found in finding.found) == ("problem", True), finding
    assert reasons([finding]) == {"made_up": finding.reason}
    assert finding.remedy
    monkeypatch.setenv("PATH", "/nowhere")
    assert check_program(name, "the package", []).found == "not found"


NESTED = ("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000")
WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")


@pytest.mark.skipif(not ROOT, reason="needs root, to drop capabilities")
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("within", "remedy"), [(NESTED, "outside that sandbox"), (WITHOUT_CAPABILITIES, "SYS_ADMIN")])
def test_the_reason_why_bubblewrap_cannot_start_is_found(within: tuple[str, ...], remedy: str) -> None:
    check = "from re_bench.doctor import check_sandbox as c; f = c('bubblewrap', ()); print(f.status, f.reason)"
    done = subprocess.run([*within, sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("problem sandbox: bubblewrap cannot start: ")
    assert remedy in done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the files that identify a machine or container."""

    def write(**files: str) -> Path:
        for name, text in {"proc/self/status": "CapEff:\t000001ffffffffff\nSeccomp:\t0\n", **files}.items():
            path = tmp_path / "machine" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "machine"

    return write


@pytest.mark.parametrize(
    ("mark", "option"),
    [
        (".dockerenv", "--security-opt=systempaths=unconfined"),
        ("run/.containerenv", "--security-opt=unmask=ALL"),
        ("run/secrets/kubernetes.io", "privileged: true"),
    ],
)
def test_remedy_has_the_options_of_the_container_engine(machine: Callable[..., Path], mark: str, option: str) -> None:
    status = "CapEff:\t00000000a80425fb\nSeccomp:\t2\n"
    found = bubblewrap_obstacle(machine(**{"proc/self/status": status, mark: ""}))
    assert found is not None
    assert option in found[1]


def test_restricted_user_namespaces_are_reported_with_a_command(machine: Callable[..., Path]) -> None:
    assert user_namespace_obstacle(machine()) is None
    root = machine(**{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"})
    found = user_namespace_obstacle(root)
    assert found is not None
    assert f"apparmor_parser -r {root}/etc/apparmor.d/bwrap-re-bench" in found[1]
    for name in ("kernel.unprivileged_userns_clone", "user.max_user_namespaces"):
        found = user_namespace_obstacle(machine(**{f"proc/sys/{name.replace('.', '/')}": "0\n"}))
        assert found is not None
        assert f"echo {name}=" in found[1]


def test_missing_package_blocks_its_task(made_up: TaskFolder) -> None:
    (made_up.directory / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["not-on-any-machine"]\n')
    [finding] = check_packages([Target(made_up, "cpu")])
    assert (finding.status, finding.blocks) == ("problem", ("made_up",))
    assert "not-on-any-machine" in finding.found
    project = made_up.directory / "pyproject.toml"
    project.write_text("[project]\ndependencies = [\"not-on-any-machine; python_version < '3'\", 'numpy']\n")
    assert check_packages([Target(made_up, "cpu")]) == []
    project.write_text('[project]\ndependencies = ["numpy ="]\n')
    assert "is not a requirement" in check_packages([Target(made_up, "cpu")])[0].found


@pytest.mark.skipif(landlock_abi() == 0, reason="the kernel has no Landlock")
def test_task_that_landlock_does_not_support_is_blocked(made_up: TaskFolder) -> None:
    with_model = replace(made_up, manifest=made_up.manifest.model_copy(update={"model": object()}))
    finding = check_sandbox("landlock", [Target(with_model, "cpu")])
    assert (finding.status, finding.blocks) == ("problem", ("made_up",))
    assert check_sandbox("landlock", [Target(made_up, "cpu")]).status != "problem"


def test_missing_profile_blocks_only_its_task(made_up: TaskFolder, path: Path) -> None:
    other = open_task(path.parent)
    targets, [finding] = choose_targets([made_up, other], "paper")
    assert [target.task for target in targets] == [other]
    assert finding.blocks == ("made_up",)
    with pytest.raises(ReBenchError, match="has no profile"):
        choose_targets([made_up], "paper")


def test_unwritable_directory_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = check_room("cache", tmp_path / "file" / "cache", "RE_BENCH_CACHE")
    assert (finding.status, "set RE_BENCH_CACHE" in finding.remedy) == ("problem", True)


def test_package_index_is_checked_and_its_password_hidden(tmp_path: Path) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        index = f"127.0.0.1:{serving.server_port}/simple"
        assert check_source(f"http://{index}").status == "ok"
        assert "secret" not in check_source(f"http://user:secret@{index}").found
        serving.shutdown()
    for source, status in (
        ("http://127.0.0.1:1/simple", "problem"), (tmp_path.as_uri(), "ok"), (f"file://{tmp_path}/none", "problem"),
    ):  # fmt: skip
        assert check_source(source).status == status
