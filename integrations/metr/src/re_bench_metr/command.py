"""Implement ``re-bench export metr``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from re_bench.cli.main import export_app
from re_bench.options import Json, ProfileName, TaskName, print_json


@export_app.command
def metr(
    task: TaskName,
    directory: Annotated[Path, Parameter(name="DIR", help="A new directory; the family gets its name.")],
    /,
    *,
    profile: ProfileName = "auto",
    sandbox: Annotated[
        Literal["bubblewrap", "user"],
        Parameter(help="The sandbox for submissions; user is for containers that may not create namespaces."),
    ] = "bubblewrap",
    json: Json = False,
) -> int:
    """Write a task as a task family of METR's Task Standard."""
    from re_bench.task.choices import profile_name  # noqa: PLC0415
    from re_bench.task.discovery import find_task  # noqa: PLC0415 - keeps --help fast
    from re_bench_metr.export import export_metr  # noqa: PLC0415

    found = find_task(task)
    chosen = profile_name(found, profile)
    export_metr(found, directory, chosen, sandbox)
    if json:
        print_json({"task": found.name, "profile": chosen, "format": "metr", "directory": str(directory)})
    else:
        print(f"{directory}: {found.name}, profile {chosen}, as a family of METR's Task Standard")
    return 0
