"""The trials of an image once it is built; each returns what is wrong with it, one line for each problem."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lock
from catalogue import TOP
from re_bench.sandbox.container import ENGINE, IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from catalogue import Image
    from engines import Engine

RE_BENCH = (sys.executable, "-m", "re_bench.cli")
ATTACKS = (sys.executable, str(TOP / "common" / "tests" / "support" / "more_attacks.py"))
HOME = "/home/agent"
SKELETON = {".bashrc", ".bash_logout", ".profile"}
"""What Debian puts into every new home."""
BESIDES = {"pip", "setuptools", "wheel"}
"""Packages that a virtual environment may have without a lock file."""
WITH_CUDA = ("nvidia-", "cuda-", "triton")
"""How the names of the packages begin that torch's CUDA build brings."""
SMALLEST = 40
"""Files of fewer bytes are no secret: an empty ``__init__.py`` is everywhere."""
HELD_OUT_PACKAGES = ("re_bench", "transformers", "datasets")
"""Modules that no agent's image may have; text of the last two is held out."""
PROGRAMS = {
    "torch": {"cc": ["cc", "--version"]},
    "rust_codecontests": {
        "rustc": ["sh", "-c", "echo 'fn main() {}' > a.rs && rustc -O a.rs -o a.out && ./a.out"],
    },
}
"""By lock file: programs that must work."""
MODULES = {"rust_codecontests": ["openai", "httpx2"], "triton_cumsum": ["triton"], "small_scaling_law": ["matplotlib"]}
"""By lock file: modules that must be importable, besides torch where it is installed."""


@dataclass(frozen=True)
class Secrets:
    """Files that no agent may find, by checksum."""

    paths: dict[str, Path]
    sizes: list[int]


def secrets_besides(shown: Path, cache: Path) -> Secrets:
    """Return all files of all tasks and of the prepared data whose content is not among those below ``shown``."""
    known = {_sha256(path) for path in _files([shown])}
    known |= {_sha256(path) for path in TOP.glob("tasks/*/instructions.md")}
    hidden = [path for path in _files([TOP / "tasks", cache]) if "__pycache__" not in path.parts]
    found = {_sha256(path): path for path in hidden if path.stat().st_size >= SMALLEST}
    kept = {checksum: path for checksum, path in found.items() if checksum not in known}
    return Secrets(kept, sorted({path.stat().st_size for path in kept.values()}))


def check_task(engine: Engine, tag: str, image: Image, workspace: Path, cache: Path, *, same: bool) -> list[str]:
    """Return what is wrong with the image of a task: its user, files, packages and programs, and secrets in it.

    Args:
        engine: what runs it.
        tag: its name there.
        image: what it should be.
        workspace: what an agent should find.
        cache: this machine's prepared data.
        same: whether it was built with this very workspace; others have other random parts.
    """
    secrets = secrets_besides(workspace, cache)
    wanted = {
        "sizes": secrets.sizes,
        "modules": ["torch"] * image.has_torch + [name for file in image.locks for name in MODULES.get(file, ())],
        "programs": {name: words for file in image.locks for name, words in PROGRAMS.get(file, {}).items()},
        "home": HOME,
        "absent": HELD_OUT_PACKAGES,
    }
    text = f"WANTED = {wanted!r}\n{(TOP / 'images' / 'probe.py').read_text()}"
    text = text.replace("from __future__ import annotations\n", "")  # it must stand first, and here nothing needs it
    done = engine.run(tag, ["python3", "-"], text=text)
    if done.returncode != 0:
        return [f"the probe ended with {done.returncode}: {done.stderr[-400:]}"]
    found = json.loads(done.stdout)
    return problems_of(found, image, workspace, secrets, same=same)


def problems_of(
    found: dict[str, Any], image: Image, workspace: Path, secrets: Secrets, *, same: bool = True
) -> list[str]:
    """Return what is wrong by what ``probe.py`` has found in the image of a task; ``same`` as in :func:`check_task`."""
    problems = [f"{name}: {why}" for name, why in found["failed"].items()]
    problems += [f"the module {name} is there" for name in found["present"]]
    if (found["user"], found["directory"]) != ("agent", f"{HOME}/solution") or found["uid"] == 0:
        problems.append(f"the user is {found['user']} ({found['uid']}) in {found['directory']}")
    for path, checksum in found["same_size"].items():
        if checksum in secrets.paths:
            problems.append(f"{path} is {secrets.paths[checksum]}")
        elif checksum is None and path.startswith(HOME):
            problems.append(f"{path} cannot be read")
    return [
        *problems,
        *_problems_at_home(found["home"], image, workspace, same=same),
        *_problems_of_packages(found, image),
    ]


def _problems_at_home(home: dict[str, Any], image: Image, workspace: Path, *, same: bool) -> Iterable[str]:
    expected = {f"{HOME}/solution/{path.relative_to(workspace)}": path for path in _files([workspace])}
    expected[f"{HOME}/instructions.md"] = TOP / "tasks" / image.tasks[0] / "instructions.md"
    for path, original in expected.items():
        entry = home.get(path)
        if entry is None or (same and entry["sha256"] != _sha256(original)):
            yield f"{path} is {'not there' if entry is None else f'not {original}'}"
        elif entry["owner"] != "agent" or not entry["writable"]:
            yield f"{path} belongs to {entry['owner']}, writable: {entry['writable']}"
    for path in sorted(home.keys() - expected.keys()):
        if Path(path).name not in SKELETON:
            yield f"{path} is there, and not in the workspace"


def _problems_of_packages(found: dict[str, Any], image: Image) -> Iterable[str]:
    installed = {lock.name_of(name): version for name, version in found["packages"].items()}
    locked = {name: version for file in image.locks for name, version in lock.locked_versions(file).items()}
    if image.has_torch:
        locked["torch"] = lock.read_pins()["torch"]
    for name, version in locked.items():
        if installed.get(name, "").partition("+")[0] != version:
            yield f"{name} is {installed.get(name, 'missing')}, not {version}"
    for name in sorted(installed.keys() - locked.keys() - BESIDES):
        if not (image.has_torch and name.startswith(WITH_CUDA)):
            yield f"{name} {installed[name]} is installed, and in no lock file"


def check_verifier(engine: Engine, tag: str, task: str, profile: str, *, validate: bool) -> list[str]:
    """Return what is wrong with a verifier: the baseline's score, or with ``validate`` that of all our solutions."""
    if not engine.runs_containers:
        done = engine.run(tag, ["sh", "-c", f"re-bench tasks | grep -w {task} && python -c 'import torch'"])
        return [] if done.returncode == 0 else [f"it has no task {task}, or no torch: {done.stderr[-400:]}"]
    score = f"re-bench score {task} /tmp/w --profile {profile} --json"
    program = f"re-bench workspace {task} /tmp/w --profile {profile} >&2 && {score}"
    if validate:
        program = f"re-bench validate {task} --profile {profile} --repeats 1 >&2"
    options = ("--network=none", *engine.nested_sandbox)
    done = engine.run(tag, ["sh", "-c", program], options=options, limit_s=3600)
    if done.returncode != 0:
        return [f"`{program}` ended with {done.returncode}: {done.stdout[-300:]} {done.stderr[-800:]}"]
    reward = 0.0 if validate else json.loads(done.stdout)["reward"]
    return [] if abs(reward) <= 0.2 else [f"the baseline's reward is {reward}"]  # noqa: PLR2004 - the widest tolerance of a task


def check_agent(engine: Engine, tag: str) -> list[str]:
    """Return what is wrong with the agent's image: its user, and whether the program starts."""
    done = engine.run(tag, ["sh", "-c", "id --user --name && cd && mlab-agent --version"])
    if done.returncode != 0 or not done.stdout.startswith("agent\n"):
        return [f"`mlab-agent --version` ended with {done.returncode}: {done.stdout[-300:]} {done.stderr[-500:]}"]
    return []


def attack(engine: Engine, images: Mapping[str, str], profile: str) -> list[str]:
    """Attack a container of the first image, and score each task's baseline in containers of its own image.

    Args:
        engine: Docker or Podman.
        images: the image's tag of each task.
        profile: the profile to score in.

    Returns:
        What did not hold; attacks and scores are printed.
    """
    if not engine.runs_containers:
        return [f"NOT RUN: {engine.kind} makes no containers; install Docker or Podman"]
    problems: list[str] = []
    for number, (task, tag) in enumerate(images.items()):
        environment = os.environ | {ENGINE: engine.command, IMAGE: tag}
        if not number:
            attacked = subprocess.run(
                [*ATTACKS, "--sandbox", "container"], env=environment, check=False, stdout=sys.stderr
            )
            if attacked.returncode != 0:
                reasons = {1: "attacks succeeded; the lines above say which"}
                problems.append(reasons.get(attacked.returncode, "NOT RUN: no sandbox; the line above says why"))
        problems += _problems_of_score(task, profile, environment)
    return problems


def _problems_of_score(task: str, profile: str, environment: Mapping[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="re-bench-images-") as place:
        workspace = str(Path(place) / "workspace")
        subprocess.run([*RE_BENCH, "workspace", task, workspace, "--profile", profile], check=True, stdout=sys.stderr)
        command = [*RE_BENCH, "score", task, workspace, "--profile", profile, "--sandbox", "container"]
        done = subprocess.run([*command, "--json"], env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        yield f"{task}: its baseline in containers of its image: {done.stdout[-400:]}{done.stderr[-400:]}"
    else:
        score = json.loads(done.stdout)
        print(f"{task} in containers of its image: reward {score['reward']}, {score['seconds']:.1f} s", file=sys.stderr)


def _files(tops: Iterable[Path]) -> list[Path]:
    return [path for top in tops for path in sorted(top.rglob("*")) if path.is_file() and not path.is_symlink()]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
