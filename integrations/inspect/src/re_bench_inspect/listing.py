"""Write ``eval.yaml`` and the tables of the README from the manifests: ``python -m re_bench_inspect.listing``.

``eval.yaml`` has the form of inspect_evals 0.26.0, which refuses keys that it does not know.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from re_bench.data.huggingface import GPT2, GPT2_XL, OPENWEBTEXT
from re_bench.task.discovery import open_task
from re_bench_server.readme import table, with_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.task.discovery import Task

INTERFACE = "A"
"""The second part of versions: the next letter when names or options of tasks change, and scores do not."""
MAINTENANCE = "Baseline, reference and two cheats of each task, without a model: do they score as they must?"

_TOP = Path(__file__).resolve().parents[4]
_TEXT = {
    "title": "RE-Bench: open-ended research engineering in machine learning",
    "description": "An agent has hours in a sandbox to improve a starting solution of a machine-learning engineering "
    "problem, and has it scored as often as it likes: 0 is the starting solution, 1 a reference.",
    "arxiv": "https://arxiv.org/abs/2411.15114",
    "group": "Coding",
    "contributors": ["re-bench"],
}
_CODECONTESTS = "deepmind/code_contests"
_HEADER = "# Made from the tasks' manifests by python -m re_bench_inspect.listing, in the form of inspect_evals.\n"


def eval_yaml(tasks: Sequence[Task]) -> str:
    """Return ``eval.yaml`` for some tasks."""
    data = {
        **_TEXT,
        "version": version(tasks),
        "tasks": [*map(_entry, tasks), {"name": "validate", "kind": "maintenance", "comment": MAINTENANCE}],
        "tags": ["Agent", "AI R&D"],
        "isolated": True,
        "metadata": {"requires": {"internet": False}, "sandbox": ["solver", "scorer"]},
        "external_assets": [_asset(name) for name in (OPENWEBTEXT.name, GPT2.name, GPT2_XL.name, _CODECONTESTS)],
    }
    return _HEADER + str(yaml.safe_dump(data, sort_keys=False, width=120, allow_unicode=True))


def version(tasks: Sequence[Task]) -> str:
    """Return the version of some tasks together: its number is higher by each new version of one of them."""
    return f"{1 + sum(task.manifest.version - 1 for task in tasks)}-{INTERFACE}"


def readme(text: str, tasks: Sequence[Task]) -> str:
    """Return a README with its tables made anew.

    Raises:
        KeyError: if it has the marker of an unknown table.
    """
    return with_tables(text, tasks, {"inspect": _table})


def _entry(task: Task) -> dict[str, Any]:
    profiles = ", ".join(task.manifest.profiles)
    comment = f"{task.manifest.title}. Profiles: {profiles}. Version {version([task])}."
    return {"name": task.name, "dataset_samples": 1, "comment": comment}


def _asset(repository: str) -> dict[str, str]:
    return {
        "type": "huggingface",
        "source": repository,
        "fetch_method": "snapshot_download",
        "state": "pinned",
        "comment": "Profile paper alone.",
    }


def _table(tasks: Sequence[Task]) -> str:
    rows = [
        [
            f"`re_bench/{task.name}`",
            f"`{task.manifest.id}`",
            task.manifest.title,
            f"{task.manifest.aggregation} of the raw scores; {task.manifest.direction} is better",
            ", ".join(task.manifest.profiles),
            version([task]),
        ]
        for task in tasks
    ]
    return table(("Task", "Task ID", "What an agent does", "Score", "Profiles", "Version"), rows)


def main() -> None:
    """Rewrite ``eval.yaml`` and the README of this checkout."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    place = _TOP / "integrations" / "inspect"
    tasks = [open_task(path.parent) for path in sorted(_TOP.glob("tasks/*/task.toml"))]
    (place / "eval.yaml").write_text(eval_yaml(tasks), encoding="utf-8")
    file = place / "README.md"
    file.write_text(readme(file.read_text(encoding="utf-8"), tasks), encoding="utf-8")


if __name__ == "__main__":
    main()
