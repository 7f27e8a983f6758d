"""The interface of a task: the classes that its ``score.py`` uses.

A task's ``score.py`` defines one subclass of :class:`Task`, which creates workspaces and scores submissions; it imports
all names from :mod:`re_bench.api`. Import slow modules such as torch inside the methods that need them: ``score.py`` is
imported for every attempt.
"""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from re_bench.data.files import import_file
from re_bench.errors import UsageError
from re_bench.processes import print_progress
from re_bench.sandbox.calls import SandboxedProcess
from re_bench.sandbox.spec import Backend, SandboxSpec
from re_bench.task.hidden_paths import hidden_directories

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from re_bench.task.choices import Instance
    from re_bench.task.discovery import TaskFolder
    from re_bench.task.manifest import Profile
    from re_bench.task.staging import Staged

ProfileT = TypeVar("ProfileT")

StandIn = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""A chat model in Python: maps a request to a completion, both as in OpenAI's API."""
Meter = Callable[[Any], object]
"""Runs one experiment: maps a request to an outcome, both JSON values. Several threads may call it concurrently.

It raises ValueError for a malformed request (see the manifest's ``meter.request``), and UsageError, whose message the
agent reads, if the experiment is not allowed."""

_TICK_S = 2.0
_PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Waiting threads leave the cores to other scorings."""


@dataclass(frozen=True)
class Setup(Generic[ProfileT]):
    """The profile and instance to prepare data and workspaces for."""

    profile_name: str
    """``cpu``, ``gpu`` or ``paper``."""
    profile: ProfileT
    """The task's own settings of the profile: an entry of :attr:`Task.profiles`."""
    instance: int
    """The number of the chosen instance; 0 if the profile's instances cannot be chosen."""
    log: Callable[[str], None]
    """Prints a line of progress."""


@dataclass(frozen=True)
class RunAnchors:
    """Raw scores of baseline and reference, measured together with the submission or stored with a task's instance."""

    starting: float
    reference: float
    source: str = "measured in this run"
    """Their source, as text."""


@dataclass(frozen=True)
class RawScore:
    """The result of :meth:`Task.score` for a valid submission."""

    raw: float
    """The public score, shown to the agent during a run, in the task's unit and direction."""
    message: str
    """One line for the agent, without numbers that the submission can choose."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the log, not shown to the agent; ``hardware`` names the measured device."""
    anchors: RunAnchors | None = None
    """Baseline and reference of the same run, or of the task's instance; they replace stored anchors."""
    private: float | None = None
    """The private score, which counts at the end, on held-out data that no public score depends on; None if ``raw``
    counts. It needs stored anchors."""


@dataclass(frozen=True)
class Gpu:
    """The GPU to score on."""

    uuid: str | None
    name: str = ""

    @property
    def details(self) -> dict[str, str]:
        """Details of a score about the GPU."""
        return {"hardware": self.name} if self.uuid else {}


@dataclass
class Job(Generic[ProfileT]):
    """One submission to score."""

    task: TaskFolder
    profile_name: str
    profile: ProfileT
    """The task's own settings of the profile."""
    settings: Profile
    """The profile's entry of ``task.toml``."""
    staged: Staged
    """The scorer's copy of the submission."""
    backend: Backend
    records: Path
    """A directory for files for the operator, such as logs; kept next to the attempt log."""
    instance: Instance | None = None
    """The instance to score with, if the profile has any; the score's details name it."""
    _last_tick: float = field(default_factory=time.monotonic)

    @property
    def submission(self) -> Path:
        """The directory of the staged copy."""
        return self.staged.directory

    @property
    def instance_number(self) -> int:
        """The number of the instance; 0 if the profile's instances cannot be chosen."""
        return self.instance if isinstance(self.instance, int) else 0

    def sandbox(
        self,
        module: ModuleType,
        *,
        packages: Sequence[ModuleType] = (),
        submission: bool = True,
        held_out: bool = False,
        environment: Mapping[str, str] | None = None,
        visible: Sequence[Path] = (),
        writable: Mapping[str, Path] | None = None,
        gpu: str | None = None,
    ) -> SandboxedProcess:
        """Start a sandboxed process that can call functions of a module of the task.

        Args:
            module: the task's module ``sandboxed``, or one in its package ``sandboxed``.
            packages: re-bench packages that the module imports, such as ``re_bench.lm``.
            submission: whether the process sees the submission, read-only, at :attr:`submission`. If not, no code of
                the submission runs there, and an exception is an internal error.
            held_out: whether the process gets held-out data, so that its messages are withheld from the agent.
            environment: environment variables.
            visible: further files and directories to show read-only at the same paths; the rest of the task's directory
                is hidden.
            writable: writable directories, by their paths in the sandbox.
            gpu: UUID of the GPU that the process may use, as CUDA device 0.
        """
        shown = {str(path): path for path in (*([self.submission] if submission else []), *visible)}
        hidden = hidden_directories(self.task.directory)
        environment = {**_PASSIVE, **(environment or {})}
        spec = SandboxSpec(shown, writable or {}, environment, limits=self.settings.limits, gpu=gpu, hidden=hidden)
        return SandboxedProcess(
            self.backend, module, spec, packages=packages, trusted=not submission, held_out=held_out
        )

    def gpu(self) -> Gpu:
        """Return the GPU to score on; its UUID is None if the profile needs no GPU.

        Raises:
            UsageError: if there is no GPU, or it cannot be identified.
        """
        if self.settings.device != "cuda":
            return Gpu(None)
        from re_bench.gpu.state import identify  # noqa: PLC0415 - only scorings on a GPU need it

        found = identify()
        return Gpu(found.uuid, found.name)

    def progress(self, text: str) -> None:
        """Print progress on stderr, at most every 2 seconds."""
        if time.monotonic() - self._last_tick > _TICK_S:
            self._last_tick = time.monotonic()
            print_progress(f"{self.task.name}: {text}")


class Task(ABC, Generic[ProfileT]):
    """A task: prepares data, creates workspaces and scores submissions."""

    profiles: Mapping[str, ProfileT]
    """The task's settings by name of the profile; ``task.toml`` has the same profiles."""
    randomized: bool = False
    """Whether workspaces differ, so that :meth:`randomize_workspace` is called for each."""

    def prepare(self, setup: Setup[ProfileT]) -> None:
        """Create the profile's data and models in the cache of prepared data, unless they exist.

        Raises:
            UsageError: if they cannot be created on this machine, or the instance does not exist.
        """

    def create_workspace(self, setup: Setup[ProfileT], directory: Path) -> None:
        """Add the files that all workspaces share to a directory that already has the files of ``starter``."""

    def randomize_workspace(self, setup: Setup[ProfileT], directory: Path, seed: int | None) -> None:
        """Add the files that differ between workspaces.

        Args:
            setup: the profile and instance.
            directory: the workspace, after :meth:`create_workspace`.
            seed: seed of the files; None for random ones.
        """

    def stand_in(self) -> StandIn | None:
        """Return the model that replaces the manifest's ``[model]`` in profiles without a real one, or None.

        It runs in the gateway's process, outside of all sandboxes, and must know nothing that is hidden from agents.
        """
        return None

    def meter(self, setup: Setup[ProfileT], directory: Path) -> Meter | None:
        """Return a function that runs and counts a session's experiments outside of its sandbox, or None.

        It runs in a separate process, after :meth:`prepare`, in the profiles of the manifest's ``[meter]``.

        Args:
            setup: the profile and instance of the session.
            directory: directory for the ledger and other files, hidden from sandboxes. It is empty at a session's
                first call and kept when the process or the server restarts.

        Raises:
            UsageError: if experiments are not possible on this machine.
        """
        del setup, directory
        return None

    def rebuild(self, setup: Setup[ProfileT], cluster: str | None) -> None:
        """Rebuild the truth, if the task computes it; ``re-bench calibrate`` calls this before it measures.

        Args:
            setup: the profile and instance.
            cluster: address of a Ray cluster to compute on; None for this machine.

        Raises:
            ReBenchError: if that fails.
        """

    @abstractmethod
    def score(self, job: Job[ProfileT]) -> RawScore:
        """Return the raw score of a submission.

        Raises:
            InvalidSubmissionError: if the submission is at fault; the agent reads the message.
        """


def load_task(folder: TaskFolder) -> Task[Any]:
    """Return the task that a folder's ``score.py`` defines.

    Raises:
        UsageError: if ``score.py`` or a package it needs is missing, or it does not define exactly one task.
    """
    path = folder.scorer
    if not path.is_file():
        raise UsageError(f"{folder.name}: {path} is missing")
    folder.add_to_path()
    name = f"_score_of_{folder.name}"
    try:
        module = import_file(path, name)
    except ModuleNotFoundError as error:
        remedy = f"pip install -c constraints.txt -e common -e tasks/{folder.name}"
        raise UsageError(f"{path}: the package {error.name} is missing; run: {remedy}") from None
    own = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == name]
    kinds = [kind for kind in own if issubclass(kind, Task) and not inspect.isabstract(kind)]
    if len(kinds) != 1:
        raise UsageError(f"{path}: defines {len(kinds)} tasks; define one subclass of re_bench.api.Task")
    task: Task[Any] = kinds[0]()
    return task


def profile_of(task: Task[ProfileT], name: str) -> ProfileT:
    """Return the task's settings of a profile.

    Raises:
        UsageError: if its class has no such profile.
    """
    if name not in task.profiles:
        raise UsageError(f"{type(task).__name__}.profiles lacks {name!r} of task.toml; add it")
    return task.profiles[name]
