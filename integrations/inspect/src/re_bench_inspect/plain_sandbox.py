"""Sandboxes without a session: a workspace of their own, gone with the sample, for any task of Inspect."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from filelock import FileLock, Timeout

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
        with _locked(root):
            self._directory = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
            self._lock = FileLock(self._directory / _LOCK, thread_local=False)
            self._lock.acquire()  # the system releases it when this process ends, however it does
        self._sockets = Path(tempfile.mkdtemp(prefix=_SOCKETS_PREFIX))  # whose paths must be short
        (self._directory / "sockets").symlink_to(self._sockets)

    async def open(self, config: SandboxConfig) -> PlainSandbox:
        """Open a sandbox.

        Raises:
            UsageError: if the configuration cannot be had here.
            ReBenchError: if the sandbox does not start.
        """
        backend, (policy, gpu) = open_backend(), _checked(config)
        name = secrets.token_hex(4)
        directory = self._directory / name
        for path in (directory, directory / "workspace"):
            path.mkdir(mode=0o700)
        if policy not in self._networks:
            self._networks[policy] = Network(policy, backend, self._sockets)
        network = self._networks[policy]
        limits = Limits(
            wall_s=_YEAR_S,  # Inspect bounds its time
            cpu_s=_YEAR_S,
            memory_mib=config.memory_mib,
            processes=config.processes,
            file_mib=config.disk_mib,
            disk_mib=config.disk_mib,
            open_files=4096,
            output_kib=32,
        )
        try:
            access = await network.open(name, directory)
            shell = await Shell.open(
                backend,
                directory / "workspace",
                directory / "home",
                limits=limits,
                environment=access.variables,
                also=access.shown,
                hidden=[self._directory.parent],
                gpu=gpu,
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
        self._lock.release()


_of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, PlainSandboxes] = WeakKeyDictionary()


async def task_init(config: SandboxConfig) -> None:
    """Note that a task of an evaluation begins, and try what its sandboxes need.

    Raises:
        UsageError: if that cannot be had here.
    """
    _checked(config)
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
            with suppress(Timeout), FileLock(directory / _LOCK, timeout=0):  # which an evaluation that runs holds
                _remove(directory)
                removed.append(directory.name)
    return removed


def _checked(config: SandboxConfig) -> tuple[NetworkPolicy, str | None]:
    """Return the network of a sandbox, and the UUID of its GPU if it has one.

    Raises:
        UsageError: if the settings contradict one another, or one cannot be had here.
    """
    policy = NetworkPolicy.from_options(config.network, list(config.allow), None)
    policy.check_sandbox(open_backend().name)
    return policy, None if config.gpu is None else find_gpu(gpu_state.identify_all(), config.gpu, "gpu").uuid


def _sandboxes() -> PlainSandboxes:
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        _of_loop[loop] = PlainSandboxes()
    return _of_loop[loop]


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(root / _LOCK):
            yield
    except OSError as error:
        raise UsageError(f"{root}: cannot be used for sandboxes ({error.strerror}); set XDG_STATE_HOME") from None


def _remove(directory: Path) -> None:
    with suppress(OSError):
        target = (directory / "sockets").readlink()
        if target.name.startswith(_SOCKETS_PREFIX) and target.stat().st_uid == directory.stat().st_uid:
            shutil.rmtree(target, ignore_errors=True)
    remove_tree(directory)
