"""What every exported format has to say of a task: instructions, resources, and the scale of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench.task import CANARY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench.task.discovery import Task
    from re_bench.task.manifest import Manifest, Profile

WORKSPACE = "/home/agent/solution"
"""Where an agent finds its workspace, in images and exports."""

_CORES = {"cpu": 2, "cuda": 8}
_LEAST_MEMORY_MIB = 6144
_SPARE_MEMORY_MIB = 2048
_SPARE_STORAGE_MIB = 12_288


@dataclass(frozen=True)
class Resources:
    """What a container needs, an agent's or one that scores."""

    cpus: int
    memory_mib: int
    storage_mib: int
    gpus: int


@dataclass(frozen=True)
class TaskFacts:
    """A task in one profile."""

    task: Task
    profile_name: str

    @property
    def manifest(self) -> Manifest:
        """The task's manifest."""
        return self.task.manifest

    @property
    def profile(self) -> Profile:
        """The profile's entry in the manifest.

        Raises:
            UsageError: if the task has no such profile.
        """
        return self.task.profile(self.profile_name)

    @property
    def resources(self) -> Resources:
        """What a submission's process may use, and as much for what runs beside it: tools, or the scorer."""
        limits, device = self.profile.limits, self.profile.device
        memory = max(_LEAST_MEMORY_MIB, limits.memory_mib + _SPARE_MEMORY_MIB)
        return Resources(_CORES[device], memory, limits.disk_mib + _SPARE_STORAGE_MIB, int(device == "cuda"))

    def instructions(self, lines: Iterable[str]) -> str:
        """Return the task's instructions, canary first, with the lines below ``Where you work``.

        Raises:
            UsageError: if they cannot be read.
        """
        path = self.task.directory / "instructions.md"
        try:
            text = path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"{path}: it cannot be read: {error.strerror}") from None
        first = f"<!-- {CANARY} -->\n"
        text = text if text.startswith(first) else first + text
        return f"{text}\n\n## Where you work\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"

    def workspace_lines(self, workspace: str = WORKSPACE) -> list[str]:
        """Return what is to be said of profile and workspace wherever no server of ours runs beside the agent."""
        manifest, profile, staging = self.manifest, self.profile, self.manifest.staging
        modelled = " Scores are modelled, not measured." if profile.modelled else ""
        lines = [
            f"This is profile `{self.profile_name}`: {profile.description}.{modelled}",
            f"Your workspace is `{workspace}`: it holds the files above, and is what you submit.",
            f"A submission may hold {staging.entries:,} files and directories, {staging.mib} MiB together.",
        ]
        if manifest.model is not None:
            lines.append("No model is offered for trials of your own; `OPENAI_BASE_URL` is not set. Scorings have one.")
        if manifest.meter is not None and (
            manifest.meter.profiles is None or self.profile_name in manifest.meter.profiles
        ):
            lines.append("Experiments are counted in your workspace alone: `RE_BENCH_EXPERIMENTS` is not set.")
        return lines

    def scale(self) -> dict[str, Any]:
        """Return what a reader of scores has to know: version, profile, unit, direction, anchors and their source.

        There are no keys without a value, so that the dictionary fits into TOML, YAML and JSON.
        """
        manifest, profile = self.manifest, self.profile
        facts: dict[str, Any] = {
            "id": manifest.id,
            "version": manifest.version,
            "profile": self.profile_name,
            "unit": manifest.unit,
            "direction": manifest.direction,
            "aggregation": manifest.aggregation,
            "score_shown_to_agent": manifest.show_score,
            "modelled": profile.modelled,
            "anchors_in_run": profile.in_run,
            "tolerance": profile.tolerance.model_dump(),
        }
        known = [profile.anchors] if profile.anchors else list(profile.devices)
        facts["anchors"] = [anchors.model_dump(mode="json", exclude_none=True) for anchors in known]
        return facts
