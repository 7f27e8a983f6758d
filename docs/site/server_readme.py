"""Write the tables of ``server/README.md`` from the manifests: ``python docs/site/server_readme.py``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from re_bench.task.discovery import TaskFolder
    from re_bench.task.manifest import Anchors, Profile

_TOP = Path(__file__).resolve().parents[2]
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_AGGREGATIONS = {
    "min": "lowest valid score (`min`)",
    "max": "highest valid score (`max`)",
    "last": "last valid score (`last`)",
}
_DEVICES = {"cpu": "none", "cuda": "one NVIDIA GPU"}


def with_tables(text: str, tasks: Sequence[TaskFolder]) -> str:
    """Return a README with its tables replaced by tables from the manifests of ``tasks``."""
    return _TABLE.sub(lambda match: f"{match[1]}{_TABLES[match[2]](tasks)}\n{match[3]}", text)


def _tasks(tasks: Sequence[TaskFolder]) -> str:
    rows = []
    for task in tasks:
        manifest = task.manifest
        port = next((entry for entry in manifest.published if entry.name == "OpenReward port"), None)
        scores = [f"{port.starting:g}", f"{port.reference:g}"] if port else ["", ""]
        rows.append([f"`{manifest.id}`", manifest.description, f"{manifest.direction} is better", *scores])
    return _table(("Task ID", "Description", "Scoring direction", "Starting score", "Reference score"), rows)


def _scores(tasks: Sequence[TaskFolder]) -> str:
    rows = []
    for task in tasks:
        for name, profile in task.manifest.profiles.items():
            first = [f"`{task.manifest.id}`", name, task.manifest.unit]
            rows += [[*first, *_anchor_cells(profile, anchors)] for anchors in _anchors(profile)]
    return _table(("Task ID", "Profile", "Unit of the raw score", "Starting", "Reference", "From"), rows)


def _anchors(profile: Profile) -> Sequence[Anchors | None]:
    return profile.devices or (profile.anchors,)


def _anchor_cells(profile: Profile, anchors: Anchors | None) -> list[str]:
    if anchors is None:
        return ["", "", "not measured yet"]
    source = anchors.source
    hardware = (source.hardware or "").removeprefix(f"{source.kind}: ")
    origin = ", ".join(filter(None, (source.kind, hardware, str(source.date or ""))))
    if profile.in_run:
        origin += "; measured again with every attempt"
    return [f"{anchors.starting:.4g}", f"{anchors.reference:.4g}", origin]


def _rewards(tasks: Sequence[TaskFolder]) -> str:
    rows = [
        [
            f"`{task.manifest.id}`",
            _AGGREGATIONS[task.manifest.aggregation],
            "yes" if task.manifest.show_score else "at the end",
        ]
        for task in tasks
    ]
    return _table(("Task ID", "Attempt that counts", "Score shown"), rows)


def _compute(tasks: Sequence[TaskFolder]) -> str:
    rows = [
        [
            f"`{task.manifest.id}`",
            name,
            _DEVICES[profile.device],
            f"{profile.limits.memory_mib / 1024:g} GiB",
            f"{profile.time_limit_s / 60:g} min",
            profile.description + (" (modelled, not measured)" if profile.modelled else ""),
        ]
        for task in tasks
        for name, profile in task.manifest.profiles.items()
    ]
    return _table(("Task ID", "Profile", "GPU", "Memory of a submission", "Time limit of a scoring", "Content"), rows)


_TABLES: dict[str, Callable[[Sequence[TaskFolder]], str]] = {
    "tasks": _tasks,
    "scores": _scores,
    "rewards": _rewards,
    "compute": _compute,
}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    readme = _TOP / "server" / "README.md"
    manifests = sorted(_TOP.glob("tasks/*/task.toml"))
    tables = with_tables(readme.read_text(encoding="utf-8"), [open_task(path.parent) for path in manifests])
    readme.write_text(tables, encoding="utf-8")
