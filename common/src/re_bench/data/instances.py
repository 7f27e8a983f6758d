"""What decides the hidden truth of tasks here: numbers that ``re-bench prepare --instance`` chose, and a secret.

The choices are a file in the cache of prepared data; 0, which every such task has, where there is none. What runs for
longer than one command pins the choices, so that all its subprocesses keep to them whatever is chosen meanwhile.

The machine's secret is a file that only its owner can read, also in the cache, which no sandbox shows. Seeds drawn from
it are what no submission may foresee and repeated scorings share. Another secret is another instance of every task that
draws on it. :mod:`re_bench.task.choices` says which tasks have which.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory, default_cache_directory
from re_bench.data.files import replace_file, sync_directory
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICES_FILE = "instances.json"
PINNED = "RE_BENCH_INSTANCES"
"""The environment variable with pinned choices, as JSON: of instances by ``TASK/PROFILE``."""


def chosen_instance(task: str, profile: str) -> int:
    """Return the number of the chosen instance.

    Raises:
        ReBenchError: if the file of the choices is damaged.
    """
    return _choices().get(f"{task}/{profile}", 0)


def choose_instance(task: str, profile: str, instance: int) -> None:
    """Have this instance served and scored from now on, by this process too.

    Raises:
        UsageError: if the choice cannot be kept.
    """
    choices, path = _choices() | {f"{task}/{profile}": instance}, cache_directory() / CHOICES_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(choices).encode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; set RE_BENCH_CACHE to a writable directory") from None
    os.environ.pop(PINNED, None)


def pinned_instances(changes: Mapping[str, int] | None = None) -> dict[str, str]:
    """Return the environment variable by which a program keeps to the choices of this moment and these changes.

    Args:
        changes: instances by ``TASK/PROFILE``.

    Raises:
        ReBenchError: if the file of the choices is damaged.
    """
    return {PINNED: json.dumps(_choices() | dict(changes or {}))}


def pin_instances(changes: Mapping[str, int] | None = None) -> None:
    """Let this process and all that it starts keep to these choices; as :func:`pinned_instances`."""
    os.environ.update(pinned_instances(changes))


def _choices() -> dict[str, int]:
    path = cache_directory() / CHOICES_FILE
    pinned = os.environ.get(PINNED)
    if pinned is None and not path.is_file():
        return {}
    try:
        choices = json.loads(pinned if pinned is not None else path.read_text(encoding="utf-8"))
        return {str(name): int(instance) for name, instance in choices.items()}
    except (ValueError, AttributeError, TypeError):
        where = str(path) if pinned is None else PINNED
        raise ReBenchError(f"{where}: not a choice of instances; remove it, and choose anew") from None


MACHINE_FILE = "instance.secret"
_BYTES = 32
_SEED_BYTES = 16
_NAME_DIGITS = 12


def secret_seed(purpose: str) -> int:
    """Return a seed of 128 bits, on one machine always the same for one ``purpose``.

    Args:
        purpose: tells apart what must not be related, such as ``"restricted_mlm masks final"``.

    Raises:
        UsageError: if there is no secret, and none can be kept.
        ReBenchError: if the file of the secret is damaged, or others can read it.
    """
    return int.from_bytes(_derived(f"seed {purpose}")[:_SEED_BYTES], "big")


def secret_name() -> str:
    """Return the secret's public name, of which nothing that is drawn from it follows.

    Raises:
        UsageError, ReBenchError: as :func:`secret_seed`.
    """
    return _derived("name").hex()[:_NAME_DIGITS]


def _derived(purpose: str) -> bytes:
    return hmac.digest(_secret(), purpose.encode(), hashlib.sha256)


def _secret() -> bytes:
    """Return the secret; it is made where there is none: in the cache or, if that is read-only, in the user's own."""
    reason: Exception | None = None
    for directory in (cache_directory, default_cache_directory):
        try:
            return _read_or_make(directory() / MACHINE_FILE)
        except (OSError, UsageError) as error:  # the latter for a user without a home directory
            reason = reason or error
    raise UsageError(f"this machine's secret cannot be kept: {reason}; set RE_BENCH_CACHE to a writable directory")


def _read_or_make(path: Path) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{MACHINE_FILE}-", dir=path.parent)  # readable by us alone
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(unfinished)  # unless another process was first
        sync_directory(path.parent)
    except FileExistsError:
        pass
    finally:
        unfinished.unlink()
    return _read(path)


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        mode, content = os.fstat(descriptor).st_mode, file.read(_BYTES + 1)
    if mode & 0o077:
        raise ReBenchError(f"{path}: others can read this machine's secret; remove it, and a new one is made")
    if len(content) != _BYTES:
        raise ReBenchError(f"{path}: this machine's secret is damaged; remove it, and a new one is made")
    return content
