"""The sessions of the repository: ``nox -l`` lists them.

Everything that imports torch shares one environment, ``.nox/shared``, made on first use and
renewed when the pins change; the sessions about one task are generated from ``tasks/*/task.toml``,
those about one version of Python from ``PYTHONS``, each with an environment ``.nox/python-VERSION``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import nox

if TYPE_CHECKING:
    from collections.abc import Callable

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "tests"]
# Sessions start programs of ours by the hundred, each of which would compile our modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

HERE = Path(__file__).parent
PINS = HERE / "constraints.txt"
SHARED = HERE / ".nox" / "shared"
WITH_RAY = HERE / ".nox" / "with-ray"
WITH_HARBOR = HERE / ".nox" / "harbor"
PYTHONS = ("3.11", "3.12", "3.13")
"""The versions that are tested; each has the sessions ``score-VERSION`` and ``tests-VERSION``."""
SET_BY_TORCH = ("torch", "triton", "setuptools")
"""By name, what another torch than the pinned one wants in versions of its own."""
HARBOR = ("harbor==0.24.0", "harbor==0.25.0")
"""The first brings what the second needs; the second asks for a newer certifi than indexes have everywhere."""
HARBOR_PYTHONS = ("python3.12", "python3.13", "python3.14")
WITH_TRL = HERE / ".nox" / "with-trl"
WITH_SPHINX = HERE / ".nox" / "with-sphinx"
SITE = HERE / ".nox" / "site"
DOCS_TESTS = ("tests/test_tutorials.py", "tests/test_pictures.py", "tests/browser")
RAY_TESTS = ("common/tests/test_ray_pool.py", "tests/test_evaluate_on_ray.py")
PROJECTS = [
    path.parent
    for pattern in (
        "common",
        "evaluation",
        "server",
        "agents/*",
        "integrations/*",
        "tasks/*",
    )  # each after what it needs
    for path in sorted(HERE.glob(f"{pattern}/pyproject.toml"))
]
LOCK = HERE / "images" / "locks" / "shared.txt"
HEAVY = {"ray"}  # by name, what no session but one needs
SANDBOX = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}
"""What the default sandbox needs, with its Debian packages; what tasks need is in their manifests."""


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style with ruff, types with mypy, and layers with import-linter, all as strict as they come."""
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")
    check_types(session)
    run(session, "lint-imports", "--no-logo", "--config", str(write_layers(Path(session.create_tmp()))))


def check_types(session: nox.Session) -> None:
    """Run mypy on everything but the tasks, and on each task by itself, since every task has a module ``score``."""
    tasks = [path for path in PROJECTS if path.parent.name == "tasks"]
    run(session, "mypy", env={"MYPYPATH": os.pathsep.join(map(str, tasks))})
    for task in tasks:
        options = ("--allow-subclassing-any", "--cache-dir", f".mypy_cache/{task.name}")  # of torch, which is Any here
        run(session, "mypy", *options, str(task), env={"MYPYPATH": str(task)})


@nox.session(venv_backend="none")
def images(session: nox.Session) -> None:
    """Build and try the images of tasks, verifiers, server and agent: all, or those named; `-- --help`."""
    run(session, "python", "images/build.py", *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the lock files of images/locks, which have the hashes of what each image and `.nox/shared` install."""
    session.install("-c", str(PINS), "uv")
    session.run("python", "images/lock.py", *session.posargs)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run all tests of the core, of the tasks, and across packages."""
    if not session.posargs:  # else the first test that needs something waits for it, and its clients with it
        run(session, "re-bench", "prepare", "--profile", "cpu")
    # Four programs on two cores would get in each other's way with two threads each.
    options = session.posargs or ["-n", "4", "--dist", "worksteal"]
    run(session, "pytest", "-p", "no:benchmark", *options, env={"OMP_NUM_THREADS": "1"})


@nox.session(venv_backend="none")
def kill_test(session: nox.Session) -> None:
    """Kill a server 200 times while its sessions work, or RE_BENCH_KILLS times: nothing told is lost, nothing left."""
    kills = {"RE_BENCH_KILLS": os.environ.get("RE_BENCH_KILLS", "200")}
    run(session, "pytest", "-p", "no:benchmark", "-s", "server/tests/test_kill.py", *session.posargs, env=kills)


@nox.session(venv_backend="none")
def browser_test(session: nox.Session) -> None:
    """Show reports, and logs in inspect view, to a real browser: nothing strange runs, nobody is asked, all works."""
    missing = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
    if missing:
        session.skip(f"NOT TESTED: no {' and no '.join(missing)}; type: sudo apt-get install chromium chromium-driver")
    options = ("-p", "no:benchmark", "-s", "-m", "browser")
    run(session, "pytest", *options, "evaluation/tests/browser", "integrations/inspect/tests", *session.posargs)


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Build the documentation site, run its tutorials, show it to a browser; `-- build`, `-- external`: fetch links."""
    need_system_programs(session)
    renew_shared_environment(session)
    python = renew_environment_with(session, WITH_SPHINX, ["sphinx", "myst-parser", "furo"])
    build = (python, "-m", "sphinx", "--quiet", "--fresh-env", "--fail-on-warning", "--keep-going", "-c", "docs/site")
    session.run(*build, "-d", str(SITE.with_name("doctrees")), ".", str(SITE), external=True)
    session.log(f"the site: {SITE / 'index.html'}")
    if session.posargs == ["external"]:
        session.run(*build, "-b", "linkcheck", ".", str(SITE.with_name("links")), external=True)
    elif session.posargs != ["build"]:
        run(session, "pytest", "-p", "no:benchmark", "-s", "-m", "slow or browser", *DOCS_TESTS, *session.posargs)


@nox.session(venv_backend="none")
def evaluation_test(session: nox.Session) -> None:
    """Run models at all tasks, RE_BENCH_EVALUATION_RUNS (3) times, stopped on the way; `-- ray`: on a Ray cluster."""
    options = ("-p", "no:benchmark", "-s", "-m", "slow", "tests/test_evaluate_all_tasks.py")
    if session.posargs != ["ray"]:
        run(session, "pytest", *options, *session.posargs)
        return
    need_system_programs(session)
    renew_shared_environment(session)
    python = renew_environment_with(session, WITH_RAY, sorted(HEAVY))
    session.run(python, "-m", "pytest", *options, external=True, env={"RE_BENCH_ON_RAY": "1"})


@nox.session(venv_backend="none")
def inspect_test(session: nox.Session) -> None:
    """Run all tasks in Inspect from start to reference, a killed eval set, and Inspect's own checks of a sandbox."""
    run(session, "pytest", "-p", "no:benchmark", "-s", "-m", "slow", "integrations/inspect/tests", *session.posargs)


@nox.session(venv_backend="none")
def harbor_test(session: nox.Session) -> None:
    """Have Harbor itself run the exported tasks, on our sandbox: oracle, nop and cheats; needs Python 3.12 or newer."""
    harbor = renew_environment_with_harbor(session)
    options = ("-p", "no:benchmark", "-s", "-m", "slow", "tests/test_harbor_trials.py", "tests/test_export_harbor.py")
    run(session, "pytest", *options, *session.posargs, env={"RE_BENCH_HARBOR": harbor})


@nox.session(venv_backend="none")
def load_test(session: nox.Session) -> None:
    """Show what a server costs on this machine: one command, 200 sessions at once, workspaces of all tasks."""
    run(session, "pytest", "-p", "no:benchmark", "-s", "bench/test_bench_environment.py", *session.posargs)


@nox.session(venv_backend="none")
def ray_test(session: nox.Session) -> None:
    """Run jobs on a Ray cluster of two nodes, one of which is killed: nothing is lost, nothing counted twice."""
    need_system_programs(session)
    renew_shared_environment(session)
    python = renew_environment_with(session, WITH_RAY, sorted(HEAVY))
    session.run(python, "-m", "pytest", "-p", "no:benchmark", *RAY_TESTS, *session.posargs, external=True)


@nox.session(venv_backend="none")
def trl_test(session: nox.Session) -> None:
    """Have TRL's rollouts work at a server of ours, with and without a reward for commands."""
    need_system_programs(session)
    renew_shared_environment(session)
    python = renew_environment_with(session, WITH_TRL, ["trl"])
    options = ("-p", "no:benchmark", "-W", "default", "server/tests/test_trl.py")  # its warnings are not ours
    session.run(python, "-m", "pytest", *options, *session.posargs, external=True)


@nox.session(venv_backend="none")
def landlock_test(session: nox.Session) -> None:
    """Attack the sandbox `landlock` in every way, as we are and as an ordinary user, on every version."""
    options = ("-p", "no:benchmark", "-m", "slow", "integrations/landlock/tests")
    run(session, "pytest", *options, *session.posargs)


@nox.session(venv_backend="none")
def metr_test(session: nox.Session) -> None:
    """Run every task as a family of METR's Task Standard by its operations: install, baseline, a cheat, reference."""
    run(session, "pytest", "-p", "no:benchmark", "-s", "-m", "slow", "tests/test_metr_tasks.py", *session.posargs)


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Time what is hot: sandboxes, messages, logs, the start of the command, whole scorings."""
    run(session, "pytest", "bench", "--benchmark-group-by=group", *session.posargs)


@nox.session(venv_backend="none")
def serve(session: nox.Session) -> None:
    """Serve the tasks to agents over the Open Reward Standard."""
    run(session, "re-bench", "serve", *session.posargs)


@nox.session(venv_backend="none")
def doctor(session: nox.Session) -> None:
    """Say what this machine lacks for the tasks, and what to type."""
    renew_shared_environment(session)
    session.run(str(SHARED / "bin" / "re-bench"), "doctor", *session.posargs, external=True)


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
    if session.name != "lint":
        need_system_programs(session)
    renew_shared_environment(session)
    session.run(str(SHARED / "bin" / program), *arguments, external=True, env=env)


def session_for_python(verb: str, text: str, command: str, options: str, **env: str) -> Callable[[str], None]:
    """Return what makes the session ``verb-VERSION``: a command in that Python, with these options or those given."""

    def make(version: str) -> None:
        def session_of_python(session: nox.Session) -> None:
            need_system_programs(session)
            torch, given = torch_and_rest(session)
            program, *arguments = command.split()
            programs = renew_environment_of(session, version, torch) / "bin"
            session.run(str(programs / program), *arguments, *(given or options.split()), external=True, env=env)

        session_of_python.__doc__ = f"{text} in Python {version}; `-- --torch VERSION`: with another torch."
        nox.session(name=f"{verb}-{version}", venv_backend="none")(session_of_python)

    return make


def make_python_sessions() -> None:
    """Make the sessions of every version of Python."""
    validate = session_for_python("score", "Check every task once", "re-bench validate", "--repeats 1")
    options = "-n 4 --dist worksteal common/tests"
    test = session_for_python("tests", "Test the core", "pytest -p no:benchmark", options, OMP_NUM_THREADS="1")
    for version in PYTHONS:
        validate(version)
        test(version)


def torch_and_rest(session: nox.Session) -> tuple[str, list[str]]:
    """Return what to install as torch, the pinned one unless ``--torch VERSION`` is given, and all other arguments."""
    parser = argparse.ArgumentParser(f"nox -s {session.name} --", add_help=False, allow_abbrev=False)
    parser.add_argument("--torch", metavar="VERSION", default=pinned("torch").removeprefix("torch=="))
    known, rest = parser.parse_known_args(session.posargs)
    return f"torch=={known.torch}", rest


def renew_shared_environment(session: nox.Session) -> None:
    """Make the shared environment unless it was made from the same pins and project files."""
    renew_environment(session, SHARED, sys.executable, pinned("torch"))


def renew_environment_of(session: nox.Session, version: str, torch: str) -> Path:
    """Make the environment of a version of Python with a torch, and return its directory."""
    interpreter = working_python(f"python{version}")
    if interpreter is None:
        session.skip(f"NOT RUN: no working python{version} on PATH or of pyenv; type: pyenv install {version}")
    other = "" if torch == pinned("torch") else f"-{torch.replace('==', '-')}"
    directory = HERE / ".nox" / f"python-{version}{other}"
    renew_environment(session, directory, interpreter, torch)
    return directory


def renew_environment(session: nox.Session, directory: Path, interpreter: str, torch: str) -> None:
    """Make an environment of all projects unless it was made from the same Python, torch, pins and project files.

    Where project files alone have changed, as by a new task, the projects are installed into it anew.
    """
    python, stamp = str(directory / "bin" / "python"), directory / "made-from"
    version = subprocess.run([interpreter, "-VV"], check=True, capture_output=True).stdout
    pinned_by = digest(version, torch.encode(), *(path.read_bytes() for path in (PINS, LOCK, Path(__file__))))
    projects = digest(*((path / "pyproject.toml").read_bytes() for path in PROJECTS))
    before = stamp.read_text().split() if stamp.is_file() else []
    if before == [pinned_by, projects]:
        return
    pip = (python, "-m", "pip")
    if before[:1] != [pinned_by]:
        session.run(interpreter, "-m", "venv", "--clear", str(directory), external=True)
        install = (*pip, "install", "--quiet", "--no-compile")  # which pip does on one core
        # Without dependencies, since the file has them all: pip looks for the newest version of one that is asked for
        # with extras, and then refuses it, since it has no hash.
        session.run(*install, "--no-deps", "--require-hashes", "-r", str(LOCK), external=True)
        # By exact version, so that a CPU build at hand is taken; the CUDA build brings packages that no lock file has.
        session.run(*install, "-c", str(pins_beside(session, torch)), torch, external=True)
        # A sandbox cannot write what is not compiled here. Templates that are no Python make the exit status 1.
        session.run(python, "-m", "compileall", "-qq", "-j", "0", str(directory), external=True, success_codes=[0, 1])
        stamp.write_text(pinned_by)
    editable = (part for path in PROJECTS for part in ("-e", str(path)))
    session.run(*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", *editable, external=True)
    session.run(*pip, "check", external=True, silent=True)  # what the lock file lacks
    stamp.write_text(f"{pinned_by} {projects}")


def digest(*parts: bytes) -> str:
    """Return a checksum of files and words."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


def pins_beside(session: nox.Session, torch: str) -> Path:
    """Return the file of pins; for another torch than it has, one without what that sets."""
    if torch == pinned("torch"):
        return PINS
    file = Path(session.create_tmp()) / PINS.name
    lines = PINS.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if line.partition("==")[0] not in SET_BY_TORCH))
    return file


def renew_environment_with(session: nox.Session, directory: Path, packages: list[str]) -> str:
    """Make an environment that has packages besides all that the shared one has, and return its Python."""
    python, stamp = str(directory / "bin" / "python"), directory / "made-from"
    made_from = (SHARED / "made-from").read_text()
    if not stamp.is_file() or stamp.read_text() != made_from:
        session.run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(directory), external=True)
        inside = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        # Linked, not found by a path: a sandbox shows the environment of its Python and no other.
        shutil.copytree(SHARED / inside, directory / inside, copy_function=os.link, dirs_exist_ok=True)
        session.run(python, "-m", "pip", "install", "--quiet", "-c", str(PINS), *packages, external=True)
        stamp.write_text(made_from)
    return python


def renew_environment_with_harbor(session: nox.Session) -> str:
    """Make the environment that has Harbor, in an interpreter new enough for it, and return its command."""
    program, stamp = WITH_HARBOR / "bin" / "harbor", WITH_HARBOR / "made-from"
    if not stamp.is_file() or stamp.read_text() != " ".join(HARBOR):
        interpreter = next((found for name in HARBOR_PYTHONS if (found := working_python(name))), None)
        if interpreter is None:
            session.skip(f"NOT TESTED: Harbor needs one of {', '.join(HARBOR_PYTHONS)} on PATH; install one")
        session.run(interpreter, "-m", "venv", "--clear", str(WITH_HARBOR), external=True)
        first, second = HARBOR
        install = (str(WITH_HARBOR / "bin" / "python"), "-m", "pip", "install", "--quiet")
        session.run(*install, first, external=True)
        session.run(*install, "--no-deps", second, external=True)
        stamp.write_text(" ".join(HARBOR))
    return str(program)


def working_python(name: str) -> str | None:
    """Return an interpreter that starts and can make environments: what pyenv puts on PATH may lead nowhere.

    Its own prefix tells the program behind such a link.
    """
    code = "import ensurepip, sys, venv; print(sys.executable)"
    versions = sorted((Path.home() / ".pyenv" / "versions").glob(f"{name.removeprefix('python')}*"))
    for program in (name, *(str(version / "bin" / "python") for version in versions)):
        found = shutil.which(program)
        done = subprocess.run([found, "-c", code], check=False, capture_output=True, text=True) if found else None
        if done is not None and done.returncode == 0:
            return done.stdout.strip()
    return None


def write_layers(directory: Path) -> Path:
    """Write layers.toml with the tasks' packages filled in, and return the file."""
    tasks = ", ".join(f'"{path.name}"' for path in PROJECTS if path.parent.name == "tasks")
    file = directory / "layers.toml"
    file.write_text((HERE / "layers.toml").read_text().replace("TASKS]", f"{tasks}]"))
    return file


def pinned(name: str) -> str:
    """Return ``name==version`` as the file of pins has it."""
    for line in PINS.read_text().splitlines():
        if line.partition("==")[0] == name:
            return line
    raise LookupError(f"{PINS.name} has no pin for {name}")


def need_system_programs(session: nox.Session) -> None:
    """Install missing system programs where we may, else say what to type; stop if the session is for nothing without.

    `re-bench doctor` looks closer, but is in the environment that is made after this.
    """
    chosen = any(word.partition("=")[0] == "--sandbox" for word in session.posargs)
    sandbox = {} if chosen or "RE_BENCH_SANDBOX" in os.environ else SANDBOX
    wanted = sandbox | programs_of_tasks()
    missing = [program for program in wanted if not use_working(session, program)]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        session.run("apt-get", "update", "-qq", external=True)
        session.run("apt-get", "install", "-y", "-qq", *packages_of(missing, wanted), external=True)
        missing = [program for program in missing if not use_working(session, program)]
    if not missing:
        return
    install = f"sudo apt-get install {' '.join(packages_of(missing, wanted))} (or your equivalent)"
    told = f"missing or not working: {', '.join(missing)}; type: {install}"
    if "rustc" in missing and shutil.which("rustc"):
        told += ", or rustup default stable if rustc is rustup's"
    needed = sandbox | programs_of_tasks(session.name.partition("-")[2] or "none")
    if any(program in needed for program in missing):
        session.error(told)
    session.warn(f"{told}; what needs them cannot run, the rest does")


def programs_of_tasks(name: str = "*") -> dict[str, str]:
    """Return what manifests name under `programs`, with Debian packages; one that cannot be read names nothing."""
    found: dict[str, str] = {}
    for manifest in HERE.glob(f"tasks/{name}/task.toml"):
        try:
            found |= tomllib.loads(manifest.read_text(encoding="utf-8")).get("programs", {})
        except (OSError, ValueError):
            continue
    return found


def packages_of(programs: list[str], packages: dict[str, str]) -> list[str]:
    """Return the Debian packages of programs, each once."""
    return sorted({package for program in programs for package in packages[program].split()})


def use_working(session: nox.Session, program: str) -> bool:
    """Tell whether a program is there; a rustup without a toolchain is passed over, for one further down PATH."""
    for directory in os.get_exec_path():
        found = shutil.which(program, path=directory)
        if found is None:
            continue
        if program == "rustc" and subprocess.run([found, "--version"], check=False, capture_output=True).returncode:
            continue
        if found != shutil.which(program):
            session.warn(f"{shutil.which(program)} does not work; {found} is used instead")
            os.environ["PATH"] = os.pathsep.join([directory, os.environ["PATH"]])
        return True
    return False


make_task_sessions()
make_python_sessions()
