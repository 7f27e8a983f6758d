"""The doctor's checks report problems and their remedies."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from re_bench.data.cache import cache_directory, is_prepared
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
from re_bench.task.prepare import run_preparation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import TaskFolder

pytestmark = pytest.mark.integration

ROOT = os.geteuid() == 0
NO_COMPILER = "#!/bin/sh\ntest $1 = --version && echo cc 1.0 && exit\n"
RUSTUP = "#!/bin/sh\necho 'error: rustup could not choose a version of rustc to run' >&2\nexit 1\n"
CHECK = "from re_bench.doctor import check_sandbox as c; f = c('bubblewrap', ()); print(f.status, f.reason)"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a function that puts a script in front of other programs on ``PATH``."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

    def write(name: str, script: str) -> Path:
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(script)
        file.chmod(0o755)
        return file

    return write


def test_working_compiler_is_ok() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler; run: apt-get install gcc libc6-dev")
    assert (finding := check_program("cc", "gcc", [])).status == "ok", finding


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"{NO_COMPILER}echo 'trial.c:1: fatal error: stdio.h: No such file' >&2; exit 1\n", "stdio.h: No such file"),
        (f"{NO_COMPILER}echo '#!/bin/false' > trial; chmod +x trial\n", "the compiled program does not run"),
        ("#!/bin/sh\nkill -9 $$\n", "exit status -9"),
    ],
)
def test_broken_compiler_is_a_problem(program: Callable[[str, str], Path], script: str, reason: str) -> None:
    program("cc", script)
    finding = check_program("cc", "gcc libc6-dev", [])
    assert (finding.status, reason in finding.found) == ("problem", True), finding
    assert "gcc libc6-dev" in finding.remedy


def test_rustup_without_toolchain_is_recognised(
    program: Callable[[str, str], Path], made_up: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = program("rustc", RUSTUP)
    monkeypatch.setenv("PATH", f"{shim.parent}:/nowhere")
    finding = check_program("rustc", "rustc", [Target(made_up, "cpu")])
    assert finding.found == f"{shim} is rustup without a toolchain"
    assert finding.remedy == "run: rustup default stable"
    assert reasons([finding]) == {"made_up": finding.reason}
    monkeypatch.setenv("PATH", "/nowhere")
    assert check_program("rustc", "rustc", []).found == "not found"


def check_within(*command: str) -> str:
    """Return the result of the bubblewrap check in a process that ``command`` starts."""
    done = subprocess.run([*command, sys.executable, "-c", CHECK], capture_output=True, text=True, check=True)
    return done.stdout


def test_nested_sandbox_is_recognised(backend: Backend) -> None:
    del backend
    user = ("--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000")
    output = check_within("bwrap", "--dev-bind", "/", "/", *user)
    assert output.startswith("problem sandbox: bubblewrap cannot start: ")
    if ROOT:
        assert "no further user namespaces; start re-bench outside that sandbox" in output


@pytest.mark.skipif(not ROOT, reason="needs root, to drop capabilities")
def test_missing_capabilities_of_root_are_named(backend: Backend) -> None:
    del backend
    output = check_within("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
    assert output.startswith("problem sandbox: bubblewrap cannot start: ")
    assert "--cap-add=SYS_ADMIN" in output or "CAP_SYS_ADMIN" in output


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


DOCKER = {
    "proc/self/status": "CapEff:\t00000000a80425fb\nSeccomp:\t2\n",
    "proc/self/attr/current": "docker-default (enforce)\n",
    "proc/self/mountinfo": "1 2 0:1 / /proc rw - proc proc rw\n3 1 0:2 / /proc/kcore rw - tmpfs tmpfs rw\n",
}


@pytest.mark.parametrize(
    ("mark", "options"),
    [
        (
            ".dockerenv",
            "=seccomp=unconfined --security-opt=systempaths=unconfined --security-opt=apparmor=unconfined",
        ),
        ("run/.containerenv", "--security-opt=unmask=ALL --security-opt=apparmor=unconfined"),
        ("run/secrets/kubernetes.io", "privileged: true"),
    ],
)
def test_remedy_has_the_options_of_the_container_engine(machine: Callable[..., Path], mark: str, options: str) -> None:
    found = bubblewrap_obstacle(machine(**DOCKER, **{mark: ""}))
    assert found is not None
    assert found[1].endswith(options)
    assert ("--cap-add=SYS_ADMIN" in found[1]) == (ROOT and "kubernetes" not in mark)


def test_restricted_user_namespaces_are_reported_with_a_command(machine: Callable[..., Path]) -> None:
    assert user_namespace_obstacle(machine()) is None
    root = machine(**{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"})
    found = user_namespace_obstacle(root)
    assert found is not None
    assert f"apparmor_parser -r {root}/etc/apparmor.d/bwrap-re-bench" in found[1]
    profile = f"profile bwrap {os.path.realpath(shutil.which('bwrap') or '/usr/bin/bwrap')} {{\n}}\n"
    found = user_namespace_obstacle(machine(**{"etc/apparmor.d/bwrap": profile}))
    assert (found is None) == ROOT
    for name in ("kernel.unprivileged_userns_clone", "user.max_user_namespaces"):
        found = user_namespace_obstacle(machine(**{f"proc/sys/{name.replace('.', '/')}": "0\n"}))
        assert found is not None
        assert found[0].startswith(f"{name} is 0")
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
    [finding] = check_packages([Target(made_up, "cpu")])
    assert finding.found == "'numpy =' is not a requirement: write PACKAGE or PACKAGE>=VERSION"


@pytest.mark.skipif(landlock_abi() == 0, reason="the kernel has no Landlock")
def test_task_that_landlock_does_not_support_is_blocked(made_up: TaskFolder) -> None:
    with_model = replace(made_up, manifest=made_up.manifest.model_copy(update={"model": object()}))
    finding = check_sandbox("landlock", [Target(with_model, "cpu")])
    assert (finding.status, finding.blocks) == ("problem", ("made_up",))
    assert check_sandbox("landlock", [Target(made_up, "cpu")]).status != "problem"


def test_is_prepared_until_a_cache_entry_is_removed(made_up: TaskFolder) -> None:
    version = made_up.manifest.version
    assert not is_prepared("made_up", "cpu", version)
    run_preparation(made_up, "cpu")
    assert is_prepared("made_up", "cpu", version)
    assert not is_prepared("made_up", "cpu", version + 1)
    for entry in json.loads((cache_directory() / "prepared" / "made_up-cpu.json").read_text())["entries"]:
        shutil.rmtree(cache_directory() / entry)
        assert not is_prepared("made_up", "cpu", version)


def test_missing_profile_blocks_only_its_task(made_up: TaskFolder, path: Path) -> None:
    text = path.read_text()
    other = made_up.directory.with_name("other")
    other.mkdir()
    (other / "task.toml").write_text(text)
    names = set(open_task(other).manifest.profiles) - set(made_up.manifest.profiles)
    assert names, "the example has a profile that the made-up task lacks"
    targets, [finding] = choose_targets([made_up, open_task(other)], min(names))
    assert [target.task.name for target in targets] == ["other"]
    assert finding.blocks == ("made_up",)
    with pytest.raises(ReBenchError, match="has no profile"):
        choose_targets([made_up], min(names))


@pytest.mark.skipif(not ROOT, reason="needs root, to become a user without a home directory")
def test_user_without_home_is_told_the_variable(made_up: TaskFolder) -> None:
    code = (
        "import sys; from pathlib import Path; from re_bench.doctor import Target, examine\n"
        "from re_bench.task.discovery import open_task\n"
        "found = examine([Target(open_task(Path(sys.argv[1])), 'cpu')], 'none', network=False)\n"
        "print([finding.found for finding in found if finding.check == 'cache'])"
    )
    unnamed = ("setpriv", "--reuid=54321", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--")
    variables = {
        name: text for name, text in os.environ.items() if name not in {"HOME", "RE_BENCH_CACHE", "XDG_CACHE_HOME"}
    }
    words = [*unnamed, sys.executable, "-c", code, str(made_up.directory)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
    assert "no home directory; set RE_BENCH_CACHE" in done.stdout, done.stderr


def test_unwritable_directory_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = check_room("cache", tmp_path / "file" / "cache", "RE_BENCH_CACHE")
    assert (finding.status, "set RE_BENCH_CACHE" in finding.remedy) == ("problem", True)


@pytest.fixture
def server() -> Iterator[str]:
    """Yield the address of a server that answers every request with an error."""

    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            """Do not log."""

    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://user:secret@127.0.0.1:{serving.server_port}/simple"
        serving.shutdown()


def test_check_source_hides_passwords(server: str, tmp_path: Path) -> None:
    plain = server.replace("user:secret@", "")
    assert check_source(plain).status == "ok"
    assert "secret" not in check_source(server).found
    assert check_source("http://127.0.0.1:1/simple").status == "problem"
    assert check_source(tmp_path.as_uri()).status == "ok"
    assert check_source(f"file://{tmp_path}/none").status == "problem"
