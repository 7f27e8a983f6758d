"""The numbers that ``re-bench prepare --instance`` has chosen here; :mod:`re_bench.task.instance` says of what.

The choices are a file in the cache of prepared data; 0, which every such task has, where there is none. What runs for
longer than one command pins the choices, so that all its subprocesses keep to them whatever is chosen meanwhile.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory
from re_bench.data.files import replace_file
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "instances.json"
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
    choices, path = _choices() | {f"{task}/{profile}": instance}, cache_directory() / FILE
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
    path = cache_directory() / FILE
    pinned = os.environ.get(PINNED)
    if pinned is None and not path.is_file():
        return {}
    try:
        choices = json.loads(pinned if pinned is not None else path.read_text(encoding="utf-8"))
        return {str(name): int(instance) for name, instance in choices.items()}
    except (ValueError, AttributeError, TypeError):
        where = str(path) if pinned is None else PINNED
        raise ReBenchError(f"{where}: not a choice of instances; remove it, and choose anew") from None
