"""The prompt of a session: the task's instructions, and what this server offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench_server.catalog import ServedTask
    from re_bench_server.settings import Settings


@dataclass(frozen=True)
class Remainder:
    """What an earlier server has left of a session."""

    hours: float
    """Hours to run commands in."""
    scored: int
    """Attempts that are used up."""


def prompt(
    served: ServedTask, settings: Settings, workspace: str, *, stand_in: bool, remainder: Remainder | None = None
) -> str:
    """Return the prompt of a session.

    Args:
        served: the task.
        settings: the server's.
        workspace: the workspace's path, as commands see it.
        stand_in: whether the model of the task, if it has one, is the stand-in.
        remainder: what an earlier server has left; None for a new session.
    """
    text = (served.task.directory / "instructions.md").read_text(encoding="utf-8").strip()
    lines = [
        *_workspace_lines(served, settings, workspace, remainder),
        *_service_lines(served, settings, stand_in=stand_in),
        *_tool_lines(served, settings, remainder),
    ]
    return f"{text}\n\n## Where you work\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def _workspace_lines(
    served: ServedTask, settings: Settings, workspace: str, remainder: Remainder | None
) -> Iterator[str]:
    profile, limits, staging = served.profile, settings.session_limits(served.limits), served.manifest.staging
    gpu = "one NVIDIA GPU" if profile.device == "cuda" else "no GPU"
    bounds = f"{limits.memory_mib} MiB of memory, {limits.disk_mib} MiB of disk, {limits.processes} processes"
    hours = f"{settings.hours:g} hours, counted from now"
    if remainder is not None:
        left = f"{remainder.hours:.2f} hours left of {settings.hours:g}"
        hours = f"{left}; this session goes on after a restart of the server"
    modelled = " Scores are modelled, not measured." if profile.modelled else ""
    yield f"This is profile `{served.profile_name}`: {profile.description}.{modelled}"
    yield f"Your workspace is `{workspace}`: it holds the files above, commands start there, and it is what you submit."
    if settings.link_data and served.manifest.shared_data:
        names = ", ".join(f"`{name}`" for name in served.manifest.shared_data)
        yield f"Files that are there at the beginning in {names} cannot be changed in place; you may replace them."
    yield f"A submission may hold {staging.entries:,} files and directories, {staging.mib} MiB together."
    yield "`$HOME` is another directory, which is no part of it: caches may grow there."
    yield f"Commands run in a sandbox with {gpu}, {bounds}, and {settings.network.describe()}."
    if settings.network.mode == "proxy":
        bound = f"up to {settings.network.limit_mib} MiB"
        yield f"`HTTP_PROXY` and the like lead to the proxy, {bound}; hosts, times and sizes are logged."
    yield f"You have {hours}. After that only `answer` works."
    yield "Time in which a call waits for its turn, in the queue of scorings or for the GPU, does not count as such."


def _service_lines(served: ServedTask, settings: Settings, *, stand_in: bool) -> Iterator[str]:
    if served.meter is not None:
        yield "`RE_BENCH_EXPERIMENTS` is set: experiments are made and counted outside of your sandbox."
    model = served.manifest.model
    if model is None:
        return
    target = "a stand-in for it, which knows nothing that is hidden from you" if stand_in else f"`{model.name}`"
    if served.task.chat_model is not None and not stand_in:
        target += f", which answers to {' and '.join(f'`{name}`' for name in model.aliases)} too"
    yield f"`OPENAI_BASE_URL` and `OPENAI_API_KEY` lead to {target}."
    yield f"You may spend ${settings.model_dollars:g} on trials of your own; scorings have a budget of their own."
    if stand_in and served.needs_key:
        yield "This session came without the secret openai_api_key, so attempts cannot be scored."


def _tool_lines(served: ServedTask, settings: Settings, remainder: Remainder | None) -> Iterator[str]:
    times = f"up to {settings.max_attempts} times"
    if remainder is not None:
        times += f", of which {max(0, settings.max_attempts - remainder.scored)} are left"
    final = {"min": "lowest", "max": "highest", "last": "last valid"}[served.manifest.aggregation]
    shown = "its score" if served.manifest.show_score else "whether it is valid, but not its score"
    longest, default = settings.longest_command_s, settings.command_s
    yield f"`bash` runs a command, for {default:g} s at most, or the `timeout` that you give, up to {longest:g}."
    yield "Directory, variables, functions and background processes stay from one `bash` call to the next."
    yield f"`answer` scores a copy of your workspace as it is, {times}; you are told {shown}."
    yield f"`answer` with `get_final_score=true` scores it once more and ends the episode with the {final} score."
