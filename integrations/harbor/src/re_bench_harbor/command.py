"""Implement ``re-bench export harbor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from re_bench.cli.main import export_app
from re_bench.options import Hours, Json, Positive, ProfileName, TaskName, print_json


@export_app.command
def harbor(
    task: TaskName,
    directory: Annotated[Path, Parameter(name="DIR", help="A directory that does not exist yet.")],
    /,
    *,
    hours: Hours = None,
    verifier_image: Annotated[
        str | None, Parameter(help="The image that scores (default: re-bench/verifier-TASK:VERSION).")
    ] = None,
    max_attempts: Annotated[
        Positive | None, Parameter(help="Add a tool that scores this many attempts during the run (default: none).")
    ] = None,
    cheats: Annotated[
        list[str] | None,
        Parameter(
            negative=(),
            consume_multiple=True,
            help="Also export these cheats as tasks (all if none is named). DIR is then the parent directory.",
        ),
    ] = None,
    profile: ProfileName = "auto",
    sandbox: Annotated[
        Literal["bubblewrap", "none"],
        Parameter(help="The sandbox for submissions; none does not isolate them, which the result states."),
    ] = "bubblewrap",
    json: Json = False,
) -> int:
    """Write a task as a Harbor task directory."""
    from re_bench.export import TaskFacts, digest_of  # noqa: PLC0415 - keeps --help fast
    from re_bench.task.choices import profile_name  # noqa: PLC0415
    from re_bench.task.discovery import find_task  # noqa: PLC0415
    from re_bench_harbor.config import HarborOptions  # noqa: PLC0415
    from re_bench_harbor.export import export_harbor  # noqa: PLC0415

    found = find_task(task)
    facts = TaskFacts(found, profile_name(found, profile))
    chosen = HarborOptions(verifier_image, sandbox, max_attempts or 0, **({} if hours is None else {"hours": hours}))
    digests = {path: digest_of(path) for path in export_harbor(facts, directory, chosen, cheats)}
    if json:
        entries = [{"directory": str(path), "sha256": digest} for path, digest in digests.items()]
        print_json({"task": found.name, "profile": facts.profile_name, "format": "harbor", "directories": entries})
        return 0
    for path, digest in digests.items():
        print(f"{path}: {found.name}, profile {facts.profile_name}, SHA-256 {digest}")
    return 0
