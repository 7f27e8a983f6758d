"""A task as a directory of Harbor, or several: the task with our reference as its solution, and one for each cheat.

The agent's image holds the workspace, as ``re-bench workspace`` lays it out. A container of its own scores: its image
has scorer, truth and prepared data, of which nothing is in the export. Beside ``solution/``, which Harbor hands to its
agent ``oracle`` alone, nothing is here that an agent may not see.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import tomli_w

from re_bench.data.instances import secret_seed
from re_bench.errors import UsageError, did_you_mean
from re_bench.export.build_context import write_build_context
from re_bench.export.files import copy_file, new_directory, write_text
from re_bench.export.harbor_config import (
    ANSWER,
    ANSWER_PORT,
    ATTEMPT_LOG,
    ATTEMPTS,
    FINAL,
    HarborOptions,
    harbor_config,
    verifier_image_of,
)
from re_bench.export.harbor_readme import filled, readme
from re_bench.export.task_facts import WORKSPACE, TaskFacts
from re_bench.processes import temporary_directory
from re_bench.task import CANARY
from re_bench.task.workspace import lay_out, recipe_of, solution_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_COMMENT = f"# {CANARY}\n"
_PRIVILEGES = """\
    cap_add: [SYS_ADMIN, NET_ADMIN, SYS_PTRACE]
    security_opt: ["seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"]
"""
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]*")


def export_harbor(
    facts: TaskFacts, directory: Path, options: HarborOptions, cheats: Sequence[str] | None = None
) -> list[Path]:
    """Write a task as Harbor's, and return its directories.

    Args:
        facts: the task in a profile.
        directory: the task's directory, to be made; with ``cheats`` the directory above those of task and cheats.
        options: the operator's choices.
        cheats: names of cheats to write as tasks of their own; none in the list for all of the profile.

    Raises:
        UsageError: if the directory exists, a cheat is not one of the profile's, the image's name is none, or the
            workspace cannot be prepared here.
        ReBenchError: if a file cannot be written.
    """
    name = options.verifier_image
    if name is not None and not _IMAGE.fullmatch(name):
        raise UsageError(f"--verifier-image {name!r}: expected an image's name, such as {verifier_image_of(facts)}")
    chosen = None if cheats is None else _chosen(facts, cheats)
    with temporary_directory("re-bench-export-") as scratch, new_directory(directory):
        workspace = scratch / "workspace"
        drawing = secret_seed(f"{facts.task.name} export")  # nobody else's, and the same each time
        lay_out(facts.task, workspace, profile=facts.profile_name, drawing=drawing)
        if chosen is None:
            _write(facts, directory, workspace, options)
            return [directory]
        written = [directory / facts.task.name]
        _write(facts, written[0], workspace, options)
        for cheat in chosen:
            written.append(directory / f"{facts.task.name}-cheat-{cheat}")
            _write(facts, written[-1], workspace, options, cheat)
        return written


def _chosen(facts: TaskFacts, cheats: Sequence[str]) -> list[str]:
    known = [name for name in facts.task.cheats if facts.manifest.cheats[name].runs_on(facts.profile_name)]
    if unknown := sorted(set(cheats) - set(known)):
        where = f"{facts.task.name} has no cheat {unknown[0]!r} in profile {facts.profile_name}"
        raise UsageError(f"{where}; it has: {', '.join(known) or 'none'}{did_you_mean(unknown[0], known)}")
    return sorted(set(cheats)) or known


def _write(
    facts: TaskFacts, directory: Path, workspace: Path, options: HarborOptions, cheat: str | None = None
) -> None:
    environment, image = directory / "environment", options.verifier_image or verifier_image_of(facts)
    config = tomli_w.dumps(harbor_config(facts, options, cheat))
    write_text(directory / "task.toml", f"{_COMMENT}{config}")
    write_text(directory / "instruction.md", facts.instructions(_lines(facts, options)))
    write_text(directory / "README.md", readme(facts, options, image, cheat))
    heading = f"{_COMMENT}# What the agent finds; it builds from this directory.\n"
    write_build_context(facts.task, environment, workspace, heading)
    if options.attempts:
        write_text(environment / "docker-compose.yaml", _attempts_compose(facts, options, image))
    _write_solution(facts, directory / "solution", "reference" if cheat is None else f"cheats/{cheat}")
    write_text(directory / "tests" / "Dockerfile", _verifier_dockerfile(image))
    write_text(directory / "tests" / "test.sh", _test(facts, options), executable=True)
    if options.sandbox != "none":
        write_text(directory / "tests" / "docker-compose.yaml", filled("verifier-compose.yaml", privileges=_PRIVILEGES))


def _lines(facts: TaskFacts, options: HarborOptions) -> list[str]:
    manifest = facts.manifest
    gpu = "one NVIDIA GPU" if facts.resources.gpus else "no GPU"
    lines = [*facts.workspace_lines(), f"You have {options.hours:g} hours, and {gpu}."]
    if not options.attempts:
        return [*lines, "When you end, your workspace is scored once, as it is then. Nothing tells you a score before."]
    shown = "its score" if manifest.show_score else "whether it is valid, but not its score"
    return [
        *lines,
        f"The MCP server `re-bench` has the tool `{ANSWER}`, which scores your workspace as it is.",
        f"It does so up to {options.attempts} times; you are told {shown}.",
        f"When you end, your workspace is scored once more, and the {FINAL[manifest.aggregation]} score counts.",
    ]


def _write_solution(facts: TaskFacts, directory: Path, variant: str) -> None:
    """Write a solution's files, and the script that lays them over the workspace and runs its command."""
    lines = ["#!/bin/sh", f"# {CANARY}", "set -eu", f"cd {WORKSPACE}"]
    for source, name in solution_files(facts.task, variant, facts.profile_name):
        copy_file(source, directory / "files" / name)
    if (directory / "files").is_dir():  # else the command makes all
        lines.append("cp -R /solution/files/. .")
    if (recipe := recipe_of(facts.task, variant)) is not None:
        lines.append(f"RE_BENCH_PROFILE={facts.profile_name} RE_BENCH_SEED=0 {shlex.join(recipe.command)}")
    script = "".join(f"{line}\n" for line in lines)
    write_text(directory / "solve.sh", script, executable=True)


def _verifier_dockerfile(image: str) -> str:
    comment = "# What scores: the image has scorer, truth and prepared data; `nox -s images` builds it.\n"
    return f"{_COMMENT}{comment}ARG VERIFIER={image}\nFROM ${{VERIFIER}}\nUSER root\nCOPY test.sh /tests/test.sh\n"


def _test(facts: TaskFacts, options: HarborOptions) -> str:
    words = [facts.task.name, "--solution", WORKSPACE, "--profile", facts.profile_name, "--sandbox", options.sandbox]
    words += ["--log", ATTEMPT_LOG] if options.attempts else []
    words += ["--out", "/logs/verifier/reward.json"]
    comment = (
        "# No file of rewards is written where scoring fails for a reason of ours: the trial has an exception then.\n"
    )
    made = f"mkdir -p {WORKSPACE}{f' {ATTEMPTS}' if options.attempts else ''}"
    return f"#!/bin/sh\n{_COMMENT}{comment}{made}\nexec python3 -m re_bench.export.harbor_reward {shlex.join(words)}\n"


def _attempts_compose(facts: TaskFacts, options: HarborOptions, image: str) -> str:
    return filled(
        "attempts-compose.yaml",
        image=image,
        task=facts.task.name,
        profile=facts.profile_name,
        workspace=WORKSPACE,
        sandbox=options.sandbox,
        log=ATTEMPT_LOG,
        attempts=options.attempts,
        port=ANSWER_PORT,
        privileges="" if options.sandbox == "none" else _PRIVILEGES,
    )
