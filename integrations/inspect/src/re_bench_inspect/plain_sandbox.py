"""Sandboxes without a session: a workspace of their own, gone with the sample, for any task of Inspect."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING
from weakref import WeakKeyDictionary

from re_bench.errors import UsageError
from re_bench.gpu import state as gpu_state
from re_bench.gpu.devices import find_gpu
from re_bench.limits import Limits
from re_bench.sandbox import open_backend
from re_bench_server.network.policy import NetworkPolicy
from re_bench_server.network.relay import Network
from re_bench_server.settings import default_state
from re_bench_server.shell.shell import Shell
from re_bench_server.state_dir import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.sandbox.spec import Backend
    from re_bench_inspect.sandbox_config import SandboxConfig

_YEAR_S = 366 * 86400
_LOCK = "lock"
_SOCKETS_PREFIX = "re-bench-inspect-"


class PlainSandbox:
    """A sandbox with the shell that holds it, and the directories that it shows."""

    def __init__(self, name: str, shell: Shell, directory: Path, network: Network) -> None:
        """Take over what :meth:`PlainSandboxes.open` has made."""
        self.execute = shell.execute
        self._name, self._shell, self._directory, self._network = name, shell, directory, network

    async def close(self) -> None:
        """End all that runs, and remove the directories."""
        try:
            await self._shell.close()
        finally:
            await self._network.close_session(self._name)
            await asyncio.to_thread(remove_tree, self._directory)


class PlainSandboxes:
    """The plain sandboxes of an evaluation, that is of an event loop: their directory, and the proxies beside them."""

    def __init__(self) -> None:
        """Begin without sandboxes, and remove what killed evaluations have left."""
        self.users = 0
        """Tasks of the evaluation that have begun and not ended."""
        self._networks: dict[NetworkPolicy, Network] = {}
        root = default_directory()
        remove_abandoned(root)
        self._directory, self._lock = _make_directory(root)
        self._sockets = Path(tempfile.mkdtemp(prefix=_SOCKETS_PREFIX))  # whose paths must be short
        (self._directory / "sockets").symlink_to(self._sockets)

    async def open(self, config: SandboxConfig) -> PlainSandbox:
        """Open a sandbox.

        Raises:
            UsageError: if the configuration cannot be had here.
            ReBenchError: if the sandbox does not start.
        """
        backend = open_backend()
        policy = policy_of(config)
        policy.check_sandbox(backend.name)
        name = secrets.token_hex(4)
        directory = self._directory / name
        for path in (directory, directory / "workspace"):
            path.mkdir(mode=0o700)
        network = self._network(policy, backend)
        try:
            access = await network.open(name, directory)
            shell = await Shell.open(
                backend,
                directory / "workspace",
                directory / "home",
                limits=limits_of(config),
                environment=access.variables,
                also=access.shown,
                hidden=[self._directory.parent],
                gpu=gpu_of(config),
                services=access.services,
                host_network=policy.mode == "open",
                scratch=directory,
            )
        except BaseException:
            await asyncio.shield(network.close_session(name))
            remove_tree(directory)
            raise
        return PlainSandbox(name, shell, directory, network)

    async def close(self) -> None:
        """End the proxies and remove the directory; all sandboxes are closed."""
        for network in self._networks.values():
            await network.close()
        await asyncio.to_thread(_remove, self._directory)
        self._lock.close()

    def _network(self, policy: NetworkPolicy, backend: Backend) -> Network:
        if policy not in self._networks:
            self._networks[policy] = Network(policy, backend, self._sockets)
        return self._networks[policy]


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, PlainSandboxes] = WeakKeyDictionary()


async def task_init(config: SandboxConfig) -> None:
    """Note that a task of an evaluation begins, and try what its sandboxes need.

    Raises:
        UsageError: if that cannot be had here.
    """
    policy_of(config).check_sandbox(open_backend().name)
    gpu_of(config)
    _sandboxes().users += 1


async def task_cleanup() -> None:
    """End what the sandboxes share, with the last task of an evaluation."""
    sandboxes = _sandboxes()
    sandboxes.users -= 1
    if sandboxes.users <= 0:
        del _of_loop[asyncio.get_running_loop()]
        await sandboxes.close()


async def open_sandbox(config: SandboxConfig) -> PlainSandbox:
    """Open a sandbox of the evaluation that runs; see :meth:`PlainSandboxes.open`."""
    return await _sandboxes().open(config)


def policy_of(config: SandboxConfig) -> NetworkPolicy:
    """Return the network of a sandbox.

    Raises:
        UsageError: if the settings contradict one another.
    """
    return NetworkPolicy.from_options(config.network, list(config.allow), None)


def limits_of(config: SandboxConfig) -> Limits:
    """Return the limits of all that runs in a sandbox; Inspect bounds its time."""
    return Limits(
        wall_s=_YEAR_S,
        cpu_s=_YEAR_S,
        memory_mib=config.memory_mib,
        processes=config.processes,
        file_mib=config.disk_mib,
        disk_mib=config.disk_mib,
        open_files=4096,
        output_kib=32,
    )


def gpu_of(config: SandboxConfig) -> str | None:
    """Return the UUID of the GPU of a sandbox, if it has one.

    Raises:
        UsageError: if there is no such GPU.
    """
    return None if config.gpu is None else find_gpu(gpu_state.identify_all(), config.gpu, "gpu").uuid


def default_directory() -> Path:
    """Return where evaluations keep the directories of their sandboxes.

    Raises:
        UsageError: if the user has no home.
    """
    return default_state().with_name("inspect-sandboxes")


def remove_abandoned(root: Path) -> list[str]:
    """Remove the directories of evaluations that were killed, none of whose processes is left; return their names.

    Raises:
        UsageError: if the directory cannot be used.
    """
    removed = []
    with _locked(root):
        for directory in (path for path in sorted(root.iterdir()) if path.is_dir()):
            with (directory / _LOCK).open("a") as lock, suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which an evaluation that runs holds
                _remove(directory)
                removed.append(directory.name)
    return removed


def _sandboxes() -> PlainSandboxes:
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        _of_loop[loop] = PlainSandboxes()
    return _of_loop[loop]


def _make_directory(root: Path) -> tuple[Path, IO[str]]:
    """Make a directory with a lock that is released when this process ends, however it does."""
    with _locked(root):
        directory = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
        lock = (directory / _LOCK).open("w", encoding="utf-8")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return directory, lock


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (root / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UsageError(f"{root}: cannot be used for sandboxes ({error.strerror}); set XDG_STATE_HOME") from None


def _remove(directory: Path) -> None:
    with suppress(OSError):
        target = (directory / "sockets").readlink()
        if target.name.startswith(_SOCKETS_PREFIX) and target.stat().st_uid == directory.stat().st_uid:
            shutil.rmtree(target, ignore_errors=True)
    remove_tree(directory)
