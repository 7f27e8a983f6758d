"""The interface of a task: what its ``score.py`` defines.

A task's folder has a ``score.py`` with one subclass of :class:`Task`. Commands and the server create workspaces with
it, and score submissions with it; :mod:`re_bench.api` has all names that a ``score.py`` imports. Import what takes
long, such as torch, inside the methods that need it: a scorer imports the module for every attempt.
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
"""A chat model in Python: from a request to its completion, both as in OpenAI's API."""
Meter = Callable[[Any], object]
"""Makes one experiment: from a request to its outcome, both JSON values. Several threads may call it at the same time.

It raises a ValueError if the request is not what the manifest's ``meter.request`` says, and a UsageError, whose message
the agent reads, if the experiment may not be made."""

_TICK_S = 2.0
_PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait for each other leave the cores to other scorings."""


@dataclass(frozen=True)
class Setup(Generic[ProfileT]):
    """What the data and the workspaces of a task are made for."""

    profile_name: str
    """``cpu``, ``gpu`` or ``paper``."""
    profile: ProfileT
    """The task's own settings of the profile: an entry of :attr:`Task.profiles`."""
    instance: int
    """The number of the chosen instance; 0 in a profile where none can be chosen."""
    log: Callable[[str], None]
    """Prints a line of progress."""


@dataclass(frozen=True)
class RunAnchors:
    """Baseline and reference in the raw score's unit, measured beside the submission or kept with a task's instance."""

    starting: float
    reference: float
    source: str = "measured in this run"
    """Where they come from, in words."""


@dataclass(frozen=True)
class RawScore:
    """What a task's :meth:`Task.score` returns for a valid submission."""

    raw: float
    """The public score: the raw score, in the task's own unit and direction, that an agent is shown during a run."""
    message: str
    """One line for the submission's author, without any figure that the submission can choose."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the log, not shown to an agent; ``hardware`` names the device that was measured on."""
    anchors: RunAnchors | None = None
    """Baseline and reference of the same run, or of the task's instance; they come before stored anchors."""
    private: float | None = None
    """The private score: the raw score on held-out data that no public score depends on, which counts at the end; None
    where it is ``raw``. The profile's anchors must be stored ones."""


@dataclass(frozen=True)
class Gpu:
    """The GPU that a submission is scored on."""

    uuid: str | None
    name: str = ""

    @property
    def details(self) -> dict[str, str]:
        """What a score's details say of it."""
        return {"hardware": self.name} if self.uuid else {}


@dataclass
class Job(Generic[ProfileT]):
    """One submission to be scored."""

    task: TaskFolder
    profile_name: str
    profile: ProfileT
    """The task's own settings of the profile."""
    settings: Profile
    """The profile's entry of ``task.toml``."""
    staged: Staged
    """The scorer's own copy of the submission."""
    backend: Backend
    records: Path
    """A directory for what the operator may want to look at later, such as logs; it is kept beside the attempt log."""
    instance: Instance | None = None
    """The instance to score by, if the profile has any; details of the score name it."""
    _last_tick: float = field(default_factory=time.monotonic)

    @property
    def submission(self) -> Path:
        """The directory of the staged copy."""
        return self.staged.directory

    @property
    def instance_number(self) -> int:
        """The number of the instance; 0 in a profile where none can be chosen."""
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
        """Start a sandboxed process, in which functions of a module of the task can be called.

        Args:
            module: the task's module ``sandboxed``, or one in its package ``sandboxed``.
            packages: packages of ours that the module imports, such as ``re_bench.lm``.
            submission: whether the process sees the submission, read-only, at :attr:`submission`. Without it no code
                of the submission runs there, and an exception is an internal error.
            held_out: whether the process gets held-out data, so that no message of it reaches the submission's author.
            environment: environment variables.
            visible: other files and directories that the process sees, read-only, where they are; of a task's
                directory nothing else is seen.
            writable: directories outside that the process may change, by their paths inside.
            gpu: UUID of the one GPU that the process may use; it is CUDA's device 0 there.
        """
        shown = {str(path): path for path in (*([self.submission] if submission else []), *visible)}
        hidden = hidden_directories(self.task.directory)
        environment = {**_PASSIVE, **(environment or {})}
        spec = SandboxSpec(shown, writable or {}, environment, limits=self.settings.limits, gpu=gpu, hidden=hidden)
        return SandboxedProcess(
            self.backend, module, spec, packages=packages, trusted=not submission, held_out=held_out
        )

    def gpu(self) -> Gpu:
        """Return the GPU to score on; one without a UUID where the profile needs none.

        Raises:
            UsageError: if there is none, or it cannot be identified.
        """
        if self.settings.device != "cuda":
            return Gpu(None)
        from re_bench.gpu.state import identify  # noqa: PLC0415 - which only scorings on a GPU need

        found = identify()
        return Gpu(found.uuid, found.name)

    def progress(self, text: str) -> None:
        """Say on stderr what is being done, every two seconds at most."""
        if time.monotonic() - self._last_tick > _TICK_S:
            self._last_tick = time.monotonic()
            print_progress(f"{self.task.name}: {text}")


class Task(ABC, Generic[ProfileT]):
    """A task: how its data and workspaces are made, and how a submission is scored."""

    profiles: Mapping[str, ProfileT]
    """The task's own settings by the name of the profile; ``task.toml`` has an entry for each of them."""
    randomized: bool = False
    """Whether workspaces differ, so that :meth:`randomize_workspace` is called for each of them."""

    def prepare(self, setup: Setup[ProfileT]) -> None:
        """Make the data and models that the profile needs in the cache of prepared data, unless they are there.

        Raises:
            UsageError: if they cannot be made here, or there is no such instance.
        """

    def create_workspace(self, setup: Setup[ProfileT], directory: Path) -> None:
        """Add the files that all workspaces have to an existing directory, which holds those of ``starter`` already."""

    def randomize_workspace(self, setup: Setup[ProfileT], directory: Path, seed: int | None) -> None:
        """Add the files in which a workspace differs from others.

        Args:
            setup: what the workspace is for.
            directory: the workspace, after :meth:`create_workspace`.
            seed: what the files are drawn from, so that they are the same each time; None for the system's randomness.
        """

    def stand_in(self) -> StandIn | None:
        """Return the model that answers agents where the manifest's ``[model]`` is not asked; None if it has none.

        It runs in the gateway's process, outside of all sandboxes. It must know nothing that is hidden from agents.
        """
        return None

    def meter(self, setup: Setup[ProfileT], directory: Path) -> Meter | None:
        """Return what makes and counts the experiments of a session outside of its sandbox; None if there are none.

        It runs in a process of its own, after :meth:`prepare`, for the profiles of the manifest's ``[meter]``.

        Args:
            setup: what the session's workspace was made for.
            directory: for the ledger and whatever else an experiment needs. No sandbox shows it. It is empty at the
                first call for a session, and kept for the next, should the process or the server be started again.

        Raises:
            UsageError: if experiments cannot be made here.
        """
        del setup, directory
        return None

    def rebuild(self, setup: Setup[ProfileT], cluster: str | None) -> None:
        """Make the truth again where the task computes it; ``re-bench calibrate`` calls this before it measures.

        Args:
            setup: what the truth is made for.
            cluster: the address of a Ray cluster to compute on; None for this machine.

        Raises:
            ReBenchError: if that fails.
        """

    @abstractmethod
    def score(self, job: Job[ProfileT]) -> RawScore:
        """Return the raw score of a submission.

        Raises:
            InvalidSubmissionError: if the submission is at fault; its author reads the message.
        """


def load_task(folder: TaskFolder) -> Task[Any]:
    """Return the task that a folder's ``score.py`` defines.

    Raises:
        UsageError: if there is no ``score.py``, a package that it needs is missing, or it does not define one task.
    """
    path = folder.scorer
    if not path.is_file():
        raise UsageError(f"{folder.name} has no scorer yet: {path} is missing")
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
        raise UsageError(f"{path} defines {len(kinds)} tasks; it should define one subclass of re_bench.api.Task")
    task: Task[Any] = kinds[0]()
    return task


def profile_of(task: Task[ProfileT], name: str) -> ProfileT:
    """Return the task's own settings of a profile.

    Raises:
        UsageError: if its ``score.py`` has none.
    """
    if name not in task.profiles:
        raise UsageError(f"{type(task).__name__}.profiles has no {name!r}, which task.toml has; add it")
    return task.profiles[name]
