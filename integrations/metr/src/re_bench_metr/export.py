"""Writing a task as a family of METR's Task Standard: its program, its manifest, and all that it needs as files."""

from __future__ import annotations

import json
import keyword
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from re_bench.errors import ReBenchError, UsageError
from re_bench.export import FINAL, TaskFacts, copy_file, copy_tree, new_directory, write_text
from re_bench.task import CANARY
from re_bench.task.requirements import CORE, requirements_of, with_dependencies
from re_bench_metr import SANDBOXES

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from re_bench.task.discovery import TaskFolder

_PROGRAM = Path(__file__).with_name("family.py")
"""The program of every family. It is never imported here, where no assets lie beside it."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LEFT_OUT = {"Dockerfile", "__pycache__", "README.md", "cheats", "pyproject.toml", "records.toml", "tests", "tools"}
_OWN = "re-bench-"
"""How the distributions of this repository begin, which no index has: they are carried along."""
_PACKAGES = {CORE: ("re_bench",), "re-bench-server": ("re_bench_gateway", "re_bench_server")}
"""The packages of distributions that are not called like their one package."""
_PLUG_INS = {"user": ("re-bench-landlock",)}
"""The distributions that a backend is in, besides the core."""
_PROGRAMS = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}
_SANDBOX_NOTES = {
    "bubblewrap": "It needs a container that may make namespaces (`CAP_SYS_ADMIN`), and gives no score without.",
    "user": "They are another user's processes and share the container's network and `/tmp` with the agent's.",
}
_METADATA = ("METADATA", "entry_points.txt")
_KEY = "OPENAI_API_KEY"
_GPU = "h100"
"""Of the Standard's names the one that the published anchors were measured on."""
_MIB_PER_GB = 1000**3 / 1024**2


def export_metr(task: TaskFolder, directory: Path, profile: str, sandbox: str = SANDBOXES[0]) -> None:
    """Write a task in one profile as a family, whose name is the directory's.

    The same task in the same environment gives the same bytes each time.

    Args:
        task: the task.
        directory: the family's directory, which does not exist yet.
        profile: the name of one of the task's profiles.
        sandbox: one of :data:`SANDBOXES`, in which submissions run.

    Raises:
        UsageError: if there is no such profile, the directory has no name for a family or exists, the task cannot be
            scored in the sandbox, or a package that it needs is not installed here.
        ReBenchError: if a file cannot be read or written.
    """
    name = directory.resolve().name
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{directory}: a family is called like its directory; give one named with a-z, 0-9 and _, "
            f"such as re_bench_{task.name}"
        )
    facts = TaskFacts(task, profile)
    task.profile(profile)
    if sandbox == "user" and task.manifest.model is not None:
        raise UsageError(
            f"{task.name} cannot be scored in the sandbox 'user': its submissions reach a model by a socket that the "
            "agent's own programs could use as well; export it with --sandbox bubblewrap"
        )
    needed = dict(sorted(with_dependencies([*requirements_of(task), *_PLUG_INS.get(sandbox, ())]).items()))
    # A local version such as +cpu says where a build came from, and is left out.
    pins = [f"{key}=={Version(one.version).public}\n" for key, one in needed.items() if not key.startswith(_OWN)]
    with new_directory(directory) as top:
        copy_file(_PROGRAM, top / f"{name}.py")
        write_text(top / "manifest.yaml", _manifest(facts))
        write_text(top / "README.md", _readme(facts, name, sandbox))
        assets = top / "assets"
        write_text(assets / "family.json", _json(_family(facts, sandbox)))
        write_text(assets / "instructions.md", facts.instructions(_lines(facts)))
        write_text(assets / "requirements.txt", "".join(pins))
        for key, distribution in needed.items():
            if key.startswith(_OWN):
                _copy_package(key, distribution, assets / "packages")
        for path in sorted(task.directory.iterdir()):
            target = assets / "tasks" / task.name / path.name
            if path.name in _LEFT_OUT or path.name.startswith("."):
                continue
            (copy_tree if path.is_dir() else copy_file)(path, target)


def _copy_package(name: str, distribution: Distribution, target: Path) -> None:
    """Copy the packages of a distribution, and of its metadata what programs ask for: its version and its commands."""
    for package in _PACKAGES.get(name, (name.replace("-", "_"),)):
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ReBenchError(f"the package {package} of the distribution {name} cannot be found")
        copy_tree(Path(spec.submodule_search_locations[0]), target / package)
    information = target / f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
    for file in _METADATA:
        if text := distribution.read_text(file):
            write_text(information / file, text)


def _family(facts: TaskFacts, sandbox: str) -> dict[str, Any]:
    """Return what the family's program reads."""
    task, manifest = facts.task, facts.manifest
    asks = manifest.asks_model(facts.profile_name)
    below = task.import_directory == task.directory
    return {
        "name": task.name,
        "profile": facts.profile_name,
        "aggregation": manifest.aggregation,
        "unit": manifest.unit,
        "task": facts.scale(),
        "required_environment_variables": [_KEY] if asks else [],
        "permissions": ["full_internet"] if asks else [],
        "sandbox": sandbox,
        "programs": _PROGRAMS | dict(manifest.programs),
        "import_directory": f"tasks/{task.name}" if below else "tasks",
    }


def _manifest(facts: TaskFacts) -> str:
    """Return ``manifest.yaml``. JSON is YAML too, and takes no package to write."""
    manifest, resources = facts.manifest, facts.resources
    needs: dict[str, Any] = {
        "cpus": resources.cpus,
        "memory_gb": round(resources.memory_mib / _MIB_PER_GB + 0.5),
        "storage_gb": round(resources.storage_mib / _MIB_PER_GB + 0.5),
    }
    if resources.gpus:
        needs["gpu"] = {"count_range": [resources.gpus, resources.gpus], "model": _GPU}
    entry = {
        "resources": needs,
        "scoring": {"visible_to_agent": manifest.show_score, "score_on_usage_limits": True},
        "meta": {**facts.scale(), "description": manifest.description},
    }
    meta = {"canary": CANARY, "title": manifest.title, "protected_paths": ["/root", "/protected"]}
    content = {"version": str(manifest.version), "meta": meta, "tasks": {facts.profile_name: entry}}
    return f"# {CANARY}\n{_json(content)}"


def _lines(facts: TaskFacts) -> list[str]:
    """Return what the agent is told of the place where it works."""
    return [
        *facts.workspace_lines(),
        "You are the user `agent`. The rest of your home is no part of a submission.",
        f"Asking for an intermediate score scores a copy of the workspace as it is; you are told {facts.shown}.",
        f"The final score is that of all scores together: the {FINAL[facts.manifest.aggregation]}.",
        "What you submit as text is not read.",
    ]


def _readme(facts: TaskFacts, name: str, sandbox: str) -> str:
    manifest = facts.manifest
    return f"""<!-- {CANARY} -->
# {name}

{manifest.title}: `{manifest.id}`, version {manifest.version}, profile `{facts.profile_name}`, as a family of
METR's Task Standard, written by `re-bench export metr`. Change the task and export it again rather than this directory.

`install` runs as root with pip and apt-get: set `PIP_INDEX_URL`, `PIP_EXTRA_INDEX_URL` or `PIP_FIND_LINKS` for a torch
without CUDA. A reward is 0 at the baseline and 1 at the reference, and not clipped. Submissions run in the sandbox
`{sandbox}`. {_SANDBOX_NOTES[sandbox]}
docs/exports.md of the repository says what each member does, and what is lost against re-bench's own server.
"""


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
