"""Sessions of re-bench; options after `--` go to the command behind a session."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nox
from nox.command import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "tests"]

HERE = Path(__file__).parent
# One environment for all sessions but `versions`: torch alone takes minutes and a GiB.
SHARED = HERE / ".nox" / "shared"
PINS = HERE / "constraints.txt"
LOCK = HERE / "images" / "locks" / "shared.txt"
PROJECTS = [
    path.parent
    for pattern in ("common", "evaluation", "server", "agents/*", "integrations/*", "tasks/*")
    for path in sorted(HERE.glob(f"{pattern}/pyproject.toml"))
]
TASKS = [path for path in PROJECTS if path.parent.name == "tasks"]
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
"""Index of torch's builds without the gigabytes of CUDA libraries."""
PYTEST = ("pytest", "-p", "no:benchmark")
TOOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # name: what pytest runs, extra packages
    "browser": (("-m", "browser"), ()),
    "evaluation": (("-m", "slow", "tests/test_evaluate_all_tasks.py"), ()),
    "evaluation-ray": (("-m", "slow", "tests/test_evaluate_all_tasks.py"), ("ray",)),
    "harbor": (("-m", "slow", "integrations/harbor/tests"), ()),
    "inspect": (("-m", "slow", "integrations/inspect/tests"), ()),
    "kill": (("server/tests/test_kill.py",), ()),
    "landlock": (("-m", "slow", "integrations/landlock/tests"), ()),
    "load": (("bench/test_bench_environment.py",), ()),
    "mcp": (("-m", "slow", "integrations/mcp/tests"), ()),
    "metr": (("-m", "slow", "integrations/metr/tests"), ()),
    "ray": (("common/tests/test_ray_executor.py", "tests/test_evaluate_on_ray.py"), ("ray",)),
    "trl": (("-W", "default", "server/tests/test_trl.py"), ("trl",)),
}


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Run ruff, mypy and import-linter; `-- --fix`: also format, and fix what ruff can fix."""
    fix = session.posargs == ["--fix"]
    run(session, "ruff", "check", *(["--fix"] if fix else []), ".")
    run(session, "ruff", "format", *([] if fix else ["--check"]), ".")
    run(session, "mypy", env={"MYPYPATH": os.pathsep.join(map(str, TASKS))})
    for task in TASKS:  # one at a time, since each has a module `score`; torch's classes are Any here
        options = ("--allow-subclassing-any", "--cache-dir", f".mypy_cache/{task.name}")
        run(session, "mypy", *options, str(task), env={"MYPYPATH": str(task)})
    layers = Path(session.create_tmp()) / "layers.toml"
    names = ", ".join(f'"{task.name}"' for task in TASKS)
    layers.write_text((HERE / "layers.toml").read_text().replace("TASKS]", f"{names}]"))
    run(session, "lint-imports", "--no-logo", "--config", str(layers))


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Run the tests; with `-- -m slow`, run the slow ones."""
    if not session.posargs:
        run(session, "re-bench", "prepare", "--profile", "cpu")  # once, instead of in the first test of each worker
    # Four programs on two cores would get in each other's way with two threads each.
    options = session.posargs or ["-n", "4", "--dist", "worksteal"]
    run(session, *PYTEST, *options, env={"OMP_NUM_THREADS": "1"})


@nox.session(venv_backend="none")
def tools(session: nox.Session) -> None:
    """Run the tests that need another tool or much time: all, or those named; see TOOLS in noxfile.py."""
    environment(session)
    for name in session.posargs or TOOLS:
        arguments, packages = TOOLS[name]
        python = environment_with(session, name, packages) if packages else SHARED / "bin" / "python"
        env = {"RE_BENCH_HARBOR": harbor(session)} if name == "harbor" else {}
        if name == "evaluation-ray":
            env["RE_BENCH_ON_RAY"] = "1"
        session.run(str(python), "-m", *PYTEST, "-s", *arguments, external=True, env=env)


@nox.session(venv_backend="none")
def real_model_test(session: nox.Session) -> None:
    """Test with SmolLM2, a small model on a real server: doctor, the gateway, the agent and an evaluation."""
    environment(session)
    python = environment_with(session, "real-model", ("gguf==0.19.0", "fastapi", "uvicorn", "accelerate"))
    session.run(str(python), "-m", *PYTEST, "-s", "-m", "slow", "tests/test_real_model.py", external=True)


@nox.session(venv_backend="none")
def load_test(session: nox.Session) -> None:
    """Score all tasks beside eight busy programs, then run the tests beside four; takes hours on two cores."""
    environment(session)
    with busy_programs(8):
        run(session, "re-bench", *SOLVABLE, *ONCE)
    with busy_programs(4):
        run(session, *PYTEST, "-n", "4", "--dist", "worksteal", env={"OMP_NUM_THREADS": "1"})


@contextmanager
def busy_programs(number: int) -> Iterator[None]:
    """Run programs that use the processor all the time, with the priority of any other."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Time sandboxes, messages, logs, the start of the command and whole scorings."""
    run(session, "pytest", "bench", "--benchmark-group-by=group", *session.posargs)


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """Build the documentation site and test its tutorials; `-- build`: only build it; `-- external`: check links."""
    environment(session)
    python = environment_with(session, "sphinx", ("sphinx", "myst-parser", "furo"))
    site = HERE / ".nox" / "site"
    options = ["-m", "sphinx", "--quiet", "--fresh-env", "--fail-on-warning", "--keep-going", "-c", "docs/site"]
    build = (str(python), *options, "-d", str(site.with_name("doctrees")), ".")
    session.run(*build, str(site), external=True)
    session.log(f"the site: {site / 'index.html'}")
    if session.posargs == ["external"]:
        session.run(*build, "-b", "linkcheck", str(site.with_name("links")), external=True)
    elif session.posargs != ["build"]:
        pages = ("tests/test_tutorials.py", "tests/test_pictures.py", "tests/browser")
        run(session, *PYTEST, "-s", "-m", "slow or browser", *pages, *session.posargs)


@nox.session(venv_backend="none")
def images(session: nox.Session) -> None:
    """Build and test the container images: all, or those named; `-- --help` lists options."""
    run(session, "python", "images/build.py", *session.posargs)


@nox.session
def lock(session: nox.Session) -> None:
    """Write images/locks: the exact packages of each image and of the shared environment, with hashes."""
    session.install("-c", str(PINS), "uv")
    session.run("python", "images/lock.py", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13"], reuse_venv=True)
def versions(session: nox.Session) -> None:
    """Test the core and validate every task in this Python; RE_BENCH_TORCH=2.11.0: with another torch."""
    directory = Path(session.virtualenv.location)
    install(session, directory, os.environ.get("RE_BENCH_TORCH"))
    session.run(*PYTEST, "-n", "4", "--dist", "worksteal", "common/tests", env={"OMP_NUM_THREADS": "1"})
    session.run("re-bench", "validate", "--repeats", "1")


def add_session(name: str, *command: str, text: str, default: tuple[str, ...] = ()) -> None:
    """Add a session that is a command of re-bench with what follows `--`, or these options by default."""

    def session_of_command(session: nox.Session) -> None:
        run(session, "re-bench", *command, *(session.posargs or default))

    session_of_command.__doc__ = text
    nox.session(name=name, venv_backend="none")(session_of_command)


def run(session: nox.Session, program: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run a program of the shared environment, which is made first if it is missing or out of date."""
    environment(session)
    session.run(str(SHARED / "bin" / program), *arguments, external=True, env=env)


def environment(session: nox.Session) -> None:
    """Make the shared environment, and name the system programs that are missing."""
    system_programs(session)
    if not (SHARED / "bin" / "python").exists():
        session.run(sys.executable, "-m", "venv", "--clear", str(SHARED), external=True)
    install(session, SHARED)


def install(session: nox.Session, directory: Path, torch: str | None = None) -> None:
    """Install torch, the locked packages and the projects, unless the same ones are installed."""
    stamp, pins = directory / "made-from", PINS
    files = (PINS, LOCK, *(path / "pyproject.toml" for path in PROJECTS))
    made_from = hashlib.sha256(b"".join([(torch or "").encode(), *(file.read_bytes() for file in files)])).hexdigest()
    if stamp.is_file() and stamp.read_text() == made_from:
        return
    if torch:  # which asks for other versions of these
        pins = Path(session.create_tmp()) / PINS.name
        lines = PINS.read_text().splitlines(keepends=True)
        pins.write_text("".join(line for line in lines if not line.startswith(("torch==", "triton==", "setuptools=="))))
    python = str(directory / "bin" / "python")
    pip = (python, "-m", "pip", "install", "--quiet", "--no-compile")
    session.run(*pip, "-c", str(PINS), "uv", external=True)  # which takes seconds for what takes pip minutes
    session.log("1 of 3: the locked packages")
    # Without dependencies, since the lock has them all.
    locked = ("--no-deps", "--require-hashes", "-r", str(LOCK))
    try:
        uv(session, directory, *locked)
    except CommandFailed:
        session.log("again with pip, which may have other settings, such as an index")
        session.run(*pip, *locked, external=True)
    gpu = has_nvidia_gpu()
    session.log(f"2 of 3: torch for {'CUDA' if gpu else 'CPUs, since there is no NVIDIA GPU'}")
    builds = () if gpu else ("--extra-index-url", CPU_BUILDS, "--retries", "1")
    # By exact version: "+cpu" counts as newer, so that the CPU build is taken where one can be found.
    session.run(*pip, *builds, "-c", str(pins), f"torch=={torch}" if torch else pinned("torch"), external=True)
    session.log("3 of 3: the projects of this checkout")
    editable = (part for path in PROJECTS for part in ("-e", str(path)))
    # A sandbox cannot write bytecode, so it is written here, for all packages.
    uv(session, directory, "--no-deps", "--no-build-isolation", "--compile-bytecode", *editable)
    session.run(python, "-m", "pip", "check", external=True, silent=True)
    stamp.write_text(made_from)


def uv(session: nox.Session, directory: Path, *arguments: str) -> None:
    """Install packages in an environment with its uv."""
    program, python = (str(directory / "bin" / name) for name in ("uv", "python"))
    session.run(program, "pip", "install", "--quiet", "--python", python, *arguments, external=True)


def environment_with(session: nox.Session, name: str, packages: tuple[str, ...]) -> Path:
    """Make a copy of the shared environment with more packages, and return its Python."""
    directory = HERE / ".nox" / f"with-{name}"
    python, stamp = directory / "bin" / "python", directory / "made-from"
    made_from = (SHARED / "made-from").read_text()
    if not stamp.is_file() or stamp.read_text() != made_from:
        session.run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(directory), external=True)
        inside = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        # Hard links, not a path entry: a sandbox shows the environment of its Python and no other.
        shutil.copytree(SHARED / inside, directory / inside, copy_function=os.link, dirs_exist_ok=True)
        session.run(str(python), "-m", "pip", "install", "--quiet", "-c", str(PINS), *packages, external=True)
        stamp.write_text(made_from)
    return python


def harbor(session: nox.Session) -> str:
    """Install Harbor in an environment of its own, since it needs Python 3.12, and return its command."""
    directory = HERE / ".nox" / "harbor"
    if not (directory / "bin" / "harbor").exists():
        found = [shutil.which(f"python3.{minor}") or "" for minor in (12, 13, 14)]
        found += map(str, Path.home().glob(".pyenv/versions/3.1[2-4]*/bin/python"))
        pythons = [one for one in found if one and "shims" not in one]
        if not pythons:
            session.skip("NOT TESTED: Harbor needs Python 3.12 or newer on PATH")
        session.run(pythons[0], "-m", "venv", str(directory), external=True)
        pip = (str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet")
        session.run(*pip, "harbor==0.24.0", external=True)  # brings what the next one needs
        session.run(*pip, "--no-deps", "harbor==0.25.0", external=True)
    return str(directory / "bin" / "harbor")


def has_nvidia_gpu() -> bool:
    """Return whether the NVIDIA driver is loaded."""
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/dxg").exists()  # the latter in WSL


def pinned(name: str) -> str:
    """Return ``name==version`` as the file of pins has it."""
    return next(line for line in PINS.read_text().splitlines() if line.startswith(f"{name}=="))


def system_programs(session: nox.Session) -> None:
    """Install missing system programs if ``RE_BENCH_INSTALL=1`` is set and the user is root.

    Otherwise, print how to install them.
    """
    wanted = {"prlimit": "util-linux"}
    if os.geteuid() == 0:  # others use the bwrap that pip installs
        wanted |= {"bwrap": "bubblewrap", "setpriv": "util-linux"}
    for manifest in HERE.glob("tasks/*/task.toml"):
        wanted |= tomllib.loads(manifest.read_text(encoding="utf-8")).get("programs", {})
    packages = sorted({wanted[program] for program in wanted if shutil.which(program) is None})
    command = ["apt-get", "install", "-y", "-qq", *" ".join(packages).split()]
    if packages and os.environ.get("RE_BENCH_INSTALL") == "1" and os.geteuid() == 0 and shutil.which("apt-get"):
        session.run("apt-get", "update", "-qq", external=True)
        session.run(*command, external=True)
    elif packages and session.name != "lint":
        session.warn(f"system programs are missing; run: sudo {' '.join(command)} (or your system's equivalent)")


ONCE = ("--repeats", "1")
SOLVABLE = ("validate", "--only", "baseline", "--only", "reference")
CHEATS = ("validate", "--only", "cheats")
add_session("score", *SOLVABLE, text="Score baseline and reference of every task: about 0, about 1.", default=ONCE)
add_session("cheats", *CHEATS, text="Score every cheat: refused, or no better than its base.", default=ONCE)
add_session("serve", "serve", text="Serve the tasks to agents over the Open Reward Standard.")
add_session("doctor", "doctor", text="Report what this machine lacks for the tasks, with the commands to install it.")
for name in (task.name for task in TASKS):
    add_session(f"score-{name}", *SOLVABLE, name, text=f"Score baseline and reference of {name}.")
    add_session(f"cheats-{name}", *CHEATS, name, text=f"Score every cheat of {name}.")
    add_session(f"calibrate-{name}", "calibrate", name, text=f"Measure and write the anchors of {name}.")
