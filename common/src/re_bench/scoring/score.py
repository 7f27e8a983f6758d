"""What a score is, and the program that every task's ``score.py`` becomes.

A task's ``score.py`` defines one function from :class:`Job` to :class:`Measured` and ends with::

    if __name__ == "__main__":
        main(measure, Path(__file__).parent)

The function raises :class:`re_bench.errors.InvalidSubmissionError` when the submission is at fault.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from re_bench.errors import InvalidSubmissionError, UsageError
from re_bench.limits import Limits
from re_bench.processes import cli_entry_point, temporary_directory
from re_bench.sandbox import open_backend
from re_bench.sandbox.spec import BACKENDS, Backend, SandboxSpec
from re_bench.sandbox.untrusted import Untrusted
from re_bench.scoring.scale import ANCHORS, RunAnchors, Wanted, choose_scale, shown_beside, stored_on
from re_bench.scoring.staging import Staged, stage
from re_bench.task import manifest
from re_bench.task.discovery import Task, open_task
from re_bench.task.hidden_paths import hidden_directories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from re_bench.task.manifest import Profile

__all__ = [
    "EXIT_STATUS",
    "PROFILES",
    "Job",
    "Measured",
    "RunAnchors",
    "Score",
    "choose_profile",
    "describe",
    "main",
    "profile_name",
]

PROFILES = ("auto", *manifest.PROFILES)
"""What may be asked for; ``auto`` chooses."""
EXIT_STATUS = {"valid": 0, "error": 1, "invalid": 3}
"""Exit status of a scorer by status of the score; 2 is a usage error, which has no score."""

_TICK_S = 2.0
_MESSAGE = 4000


@dataclass(frozen=True)
class Measured:
    """What a scorer found of a valid submission."""

    raw: float
    """The raw score, in the task's own unit and direction."""
    message: str
    """One line for the submission's author."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the log, not shown to an agent; ``hardware`` names the device that was measured on."""
    anchors: RunAnchors | None = None
    """Baseline and reference measured in the same run; they come before stored anchors."""


@dataclass(frozen=True)
class Score:
    """The outcome of scoring one submission; its fields are those of the JSON object."""

    task: str
    profile: str
    status: Literal["valid", "invalid", "error"]
    raw: float | None
    reward: float | None
    message: str
    details: Mapping[str, Any]
    seconds: float

    def to_json(self) -> str:
        """Return the score as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=True, allow_nan=False)


@dataclass
class Job:
    """One submission to be scored."""

    task: Task
    profile_name: str
    profile: Profile
    staged: Staged
    """The scorer's own copy of the submission."""
    backend: Backend
    anchors: Wanted = "run"
    """Whether anchors of this run are wanted, or stored ones, for which a scorer need not measure any."""
    _last_tick: float = field(default_factory=time.monotonic)

    @property
    def submission(self) -> Path:
        """The directory of the staged copy."""
        return self.staged.directory

    def untrusted(
        self,
        harness: str,
        *,
        environment: Mapping[str, str] | None = None,
        show: bool = True,
        also: Sequence[Path] = (),
        gpu: str | None = None,
    ) -> Untrusted:
        """Start a sandboxed process with a harness of the task in it.

        Args:
            harness: path of the harness in the task's package, such as ``harness/player.py``.
            environment: extra environment variables.
            show: whether the process sees the submission, read-only, at :attr:`submission`.
            also: other directories that the process sees, read-only, where they are; of a task's directory
                nothing else is seen.
            gpu: UUID of the one GPU that the process may use; it is CUDA's device 0 there.
        """
        limits = Limits(**self.profile.limits.model_dump())
        visible = {str(path): path for path in (*([self.submission] if show else []), *also)}
        hidden = hidden_directories(self.task.directory)
        spec = SandboxSpec(visible, {}, environment or {}, limits=limits, gpu=gpu, hidden=hidden)
        return Untrusted(self.backend, self.task.package / harness, spec)

    def on_device(self, hardware: str) -> None:
        """Say which device will be measured on, so that a reward that cannot be had is refused before the work.

        Raises:
            UsageError: if stored anchors are wanted and this device has none.
        """
        if self.anchors == "stored" and self.profile.in_run:
            stored_on(self.task, self.profile_name, hardware)

    def progress(self, text: str) -> None:
        """Say on stderr what is being done, every two seconds at most."""
        if time.monotonic() - self._last_tick > _TICK_S:
            self._last_tick = time.monotonic()
            print(f"{self.task.name}: {text}", file=sys.stderr, flush=True)


def main(measure: Callable[[Job], Measured], directory: Path, arguments: Sequence[str] | None = None) -> NoReturn:
    """Be a task's ``score.py``: read the command line, score, print, exit with the documented status."""
    with cli_entry_point("score.py"):
        task = open_task(directory)
        options = _parse(task, arguments)
        score = _score(task, measure, options)
    print(score.to_json() if options.json else describe(task, score), flush=True)
    sys.exit(EXIT_STATUS[score.status])


def _parse(task: Task, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="score.py", description=f"Score a submission to {task.name}.")
    parser.add_argument("--solution", metavar="DIR", type=Path, required=True, help="the submission's directory")
    parser.add_argument("--profile", choices=PROFILES, default="auto", help="auto: gpu where there is one, else cpu")
    parser.add_argument("--sandbox", choices=BACKENDS, help="'none' protects nothing and is recorded in the score")
    parser.add_argument(
        "--anchors",
        choices=ANCHORS,
        default="run",
        help="where a profile measures its anchors in every run: use those, or the ones stored for this device",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(arguments)


def _score(task: Task, measure: Callable[[Job], Measured], options: argparse.Namespace) -> Score:
    started = time.monotonic()
    name, profile = choose_profile(task, options.profile)
    backend = open_backend(options.sandbox)
    blank = Score(task.name, name, "error", None, None, "", {"sandbox": backend.name}, 0.0)
    with temporary_directory("re-bench-score-") as place:
        place.chmod(0o755)  # the sandbox runs as another user
        try:
            staged = stage(options.solution, place / "submission", task.bounds)
            details = {"sandbox": backend.name, "submission": staged.sha256, "skipped": staged.skipped}
            blank = replace(blank, details=details)
            _check_presence(task, staged)
            job = Job(task, name, profile, staged, backend, options.anchors)
            score = _valid(blank, job, measure(job))
        except UsageError:
            raise
        except InvalidSubmissionError as fault:
            score = replace(blank, status="invalid", message=_printable(str(fault)))
        except Exception as error:  # noqa: BLE001 - whatever fails here is ours, and is reported as such
            traceback.print_exc()
            score = replace(blank, message=_printable(f"the scorer failed: {type(error).__name__}: {error}"))
    return replace(score, seconds=round(time.monotonic() - started, 3))


def _valid(blank: Score, job: Job, measured: Measured) -> Score:
    json.dumps(dict(measured.details), allow_nan=False)  # what no log can hold is the scorer's fault, said now
    hardware = measured.details.get("hardware")
    scale = choose_scale(job.task, job.profile_name, measured.anchors, hardware, job.anchors)
    if not math.isfinite(measured.raw):
        raise InvalidSubmissionError(f"the raw score is {measured.raw}, which is no number")
    normalised = {"anchors": asdict(scale) if scale else None} | shown_beside(job.profile, measured.raw, hardware)
    return replace(
        blank,
        status="valid",
        raw=measured.raw,
        reward=scale.reward(measured.raw) if scale else None,
        message=measured.message,
        details={**blank.details, **measured.details, **normalised},
    )


def choose_profile(task: Task, wanted: str) -> tuple[str, Profile]:
    """Return the profile called ``wanted``; ``auto`` is ``gpu`` where there is a device and a profile, else ``cpu``.

    Raises:
        UsageError: if the task has no such profile, or the profile's device is missing.
    """
    name = profile_name(task, wanted)
    profile = task.profile(name)
    if profile.device == "cuda" and not _cuda_present():
        raise UsageError(f"profile {name} needs a CUDA device and this machine shows none; use --profile cpu")
    return name, profile


def profile_name(task: Task, wanted: str) -> str:
    """Return ``wanted``, or what ``auto`` stands for here; nothing is checked."""
    if wanted != "auto":
        return wanted
    return "gpu" if "gpu" in task.manifest.profiles and _cuda_present() else "cpu"


def _cuda_present() -> bool:
    """Tell whether there is an NVIDIA device, without importing torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def _check_presence(task: Task, staged: Staged) -> None:
    wanted = task.manifest.submission
    if not any(_is_file(staged.directory / name) for name in wanted):
        links = "".join(f"; {name} is a link to no file" for name in wanted if (staged.directory / name).is_symlink())
        skipped = "".join(f"; not copied: {entry}" for entry in staged.skipped[:5])
        raise InvalidSubmissionError(f"the submission has no {' or '.join(wanted)}{links}{skipped}")


def _is_file(path: Path) -> bool:
    """Tell whether ``path`` is a file; a link to a name too long to exist is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _printable(text: str) -> str:
    """Return a message that a submission may have written, as one paragraph without what a terminal would obey."""
    text = re.sub(r"\n\s*\n", "\n", text).strip() or "it failed and gave no reason"
    cut = text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} [...]"
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in cut)


def describe(task: Task, score: Score) -> str:
    """Return a score in words, for a person."""
    lines = [f"{score.task} ({score.profile}): {score.status} after {score.seconds:.1f} s", score.message]
    if score.raw is not None:
        lines.insert(1, f"raw {score.raw:.6g} {task.manifest.unit}, reward {_reward_in_words(score)}")
    return "\n".join(line for line in lines if line)


def _reward_in_words(score: Score) -> str:
    """Return the reward, and by which anchors where there may be two kinds."""
    if score.reward is None:
        return "no anchors yet"
    if "stored_reward" not in score.details:
        return f"{score.reward:.4f}"
    stored = score.details["stored_reward"]
    beside = "this device has no stored ones" if stored is None else f"{stored:.4f} by stored ones"
    return f"{score.reward:.4f} (anchors {score.details['anchors']['source']}; {beside})"
