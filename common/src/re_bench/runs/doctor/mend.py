"""Do what findings say that a program can do, as root where it takes root."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.runs.doctor.finding import fix_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from re_bench.runs.doctor.finding import Finding, Fix


def mend(findings: Iterable[Finding], say: Callable[[str], None]) -> list[str]:
    """Apply the fix of each finding that has one, once, and return what failed, a line each.

    Args:
        findings: what was found.
        say: is told every step before it is done.

    Raises:
        UsageError: if there is something to mend that takes root, and this is not root; after all else is done.
    """
    fixes = dict.fromkeys(finding.fix for finding in findings if finding.fix is not None)
    allowed = [fix for fix in fixes if os.geteuid() == 0 or not fix.as_root]
    failed = []
    for fix in allowed:
        try:
            _apply(fix, say)
        except ReBenchError as error:
            failed.append(str(error))
    if len(allowed) < len(fixes):
        raise UsageError(f"mending this takes root; type: {fix_command()}")
    return failed


def _apply(fix: Fix, say: Callable[[str], None]) -> None:
    is_new = fix.file is not None and not fix.file.exists()
    if fix.file is not None:
        say(f"writing {fix.file}")
        try:
            fix.file.write_text(fix.content, encoding="utf-8")
        except OSError as error:
            raise ReBenchError(f"{fix.file}: cannot be written ({error.strerror})") from None
    try:
        for command in fix.commands:
            say(f"running {shlex.join(command)}")
            _run(command)
    except ReBenchError:
        if fix.file is not None and is_new:  # else it would look as if it were in effect
            fix.file.unlink(missing_ok=True)
        raise


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    except OSError as error:
        raise ReBenchError(f"{command[0]}: cannot be started ({error.strerror})") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ReBenchError(f"{shlex.join(command)}: ended with exit status {done.returncode}: {' '.join(last)}")
