"""A secret of the machine, and seeds drawn from it, for what no submission may foresee and repeated scorings share.

It is a file that only its owner can read, in the cache of prepared data, which no sandbox shows. Another secret is
another instance of every task that draws on it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path

from re_bench.data.cache import cache_directory, default_cache_directory
from re_bench.data.files import sync_directory
from re_bench.errors import ReBenchError, UsageError

FILE = "instance.secret"
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
            return _read_or_make(directory() / FILE)
        except (OSError, UsageError) as error:  # the latter for a user without a home directory
            reason = reason or error
    raise UsageError(f"this machine's secret cannot be kept: {reason}; set RE_BENCH_CACHE to a writable directory")


def _read_or_make(path: Path) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{FILE}-", dir=path.parent)  # readable by us alone
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
