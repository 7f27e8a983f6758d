"""Write ``eval.yaml`` from the manifests, in the form of inspect_evals: ``python -m re_bench_inspect.listing``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from re_bench.data.huggingface import GPT2, GPT2_XL, OPENWEBTEXT
from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.task.discovery import TaskFolder

INTERFACE = "A"
"""The second part of versions: the next letter when names or options of tasks change, and scores do not."""

_TOP = Path(__file__).resolve().parents[4]
_TEXT = {
    "title": "RE-Bench: open-ended research engineering in machine learning",
    "description": "An agent has hours in a sandbox to improve a starting solution of a machine-learning engineering "
    "problem, and has it scored as often as it likes: 0 is the starting solution, 1 a reference.",
    "arxiv": "https://arxiv.org/abs/2411.15114",
    "group": "Coding",
    "contributors": ["re-bench"],
}
_MAINTENANCE = "Baseline, reference and two cheats of each task, without a model: do they score as expected?"
_ASSET = {"fetch_method": "snapshot_download", "state": "pinned", "comment": "Profile paper alone."}
_ASSETS = (OPENWEBTEXT.name, GPT2.name, GPT2_XL.name, "deepmind/code_contests")
_HEADER = "# Made from the tasks' manifests by python -m re_bench_inspect.listing, in the form of inspect_evals.\n"


def eval_yaml(tasks: Sequence[TaskFolder]) -> str:
    """Return ``eval.yaml`` for some tasks; inspect_evals 0.26.0 refuses other keys."""
    data: dict[str, Any] = {
        **_TEXT,
        "version": version(tasks),
        "tasks": [*map(_entry, tasks), {"name": "validate", "kind": "maintenance", "comment": _MAINTENANCE}],
        "tags": ["Agent", "AI R&D"],
        "isolated": True,
        "metadata": {"requires": {"internet": False}, "sandbox": ["solver", "scorer"]},
        "external_assets": [{"type": "huggingface", "source": name, **_ASSET} for name in _ASSETS],
    }
    return _HEADER + str(yaml.safe_dump(data, sort_keys=False, width=120, allow_unicode=True))


def version(tasks: Sequence[TaskFolder]) -> str:
    """Return the version of some tasks together: its number is higher by each new version of one of them."""
    return f"{1 + sum(task.manifest.version - 1 for task in tasks)}-{INTERFACE}"


def _entry(task: TaskFolder) -> dict[str, Any]:
    profiles = ", ".join(task.manifest.profiles)
    comment = f"{task.manifest.title}. Profiles: {profiles}. Version {version([task])}."
    return {"name": task.name, "dataset_samples": 1, "comment": comment}


def main() -> None:
    """Rewrite ``eval.yaml`` of this checkout."""
    tasks = [open_task(path.parent) for path in sorted(_TOP.glob("tasks/*/task.toml"))]
    (_TOP / "integrations" / "inspect" / "eval.yaml").write_text(eval_yaml(tasks), encoding="utf-8")


if __name__ == "__main__":
    main()
