"""Run all checks at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.runs.doctor.finding import Finding, Target
from re_bench.runs.doctor.host import read_host
from re_bench.runs.doctor.isolation import check_kernel, check_sandbox
from re_bench.runs.doctor.machine import check_disks, check_gpus, check_memory
from re_bench.runs.doctor.packages import check_packages, check_python
from re_bench.runs.doctor.prepared import check_prepared
from re_bench.runs.doctor.programs import check_program, programs_of
from re_bench.task.profile_choice import profile_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from re_bench.task.discovery import Task


def choose_targets(tasks: Iterable[Task], profile: str) -> tuple[list[Target], list[Finding]]:
    """Return the tasks in the profile called so, or that ``auto`` stands for, and a problem for each that lacks it.

    Raises:
        UsageError: if none has it.
    """
    chosen = [Target(task, profile_name(task, profile)) for task in tasks]
    found = [target for target in chosen if target.profile in target.task.manifest.profiles]
    lacking = [target for target in chosen if target not in found]
    if lacking and not found:
        lacking[0].task.profile(lacking[0].profile)
    return found, [_no_profile(target) for target in lacking]


def _no_profile(target: Target) -> Finding:
    try:
        target.task.profile(target.profile)
    except UsageError as error:
        return Finding("profile", "problem", str(error), blocks=(target.task.name,))
    raise AssertionError(target)


def examine(targets: Sequence[Target], sandbox: str | None = None, *, network: bool | None = None) -> list[Finding]:
    """Return what all checks find, in the order in which a person would read it; it takes about a second.

    Args:
        targets: the tasks that are to run, in their profiles.
        sandbox: a backend's name, if not the default.
        network: whether to ask the servers that data is fetched from; None: if something has to be fetched.
    """
    checks: list[Callable[[], Finding | list[Finding]]] = [
        check_python,
        partial(check_packages, targets),
        lambda: check_kernel(read_host()),
        partial(check_sandbox, sandbox, targets),
        *(partial(check_program, name, *entry) for name, entry in programs_of(targets).items()),
        partial(check_gpus, targets),
        partial(check_memory, targets),
        check_disks,
        partial(check_prepared, targets, network=network),
    ]
    with ThreadPoolExecutor(len(checks)) as pool:
        results = [future.result() for future in [pool.submit(check) for check in checks]]
    return [finding for result in results for finding in (result if isinstance(result, list) else [result])]
