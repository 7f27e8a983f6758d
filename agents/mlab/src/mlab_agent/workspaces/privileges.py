"""What a script may do and know: no capabilities of root, and those variables of the environment that are listed."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from mlab_agent.trace import MIN_SECRET_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_PR_SET_DUMPABLE = 4
_PROBE_S = 60
_PROGRAMS = "/usr/bin:/bin:/usr/sbin:/sbin"
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLUMNS|LINES|TMPDIR|TEMP|TMP|MLAB_AGENT_RUN"
    r"|PYTHON\w*|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV)|LD_LIBRARY_PATH|LIBRARY_PATH|CPATH|C_INCLUDE_PATH|CC|CXX"
    r"|PKG_CONFIG_PATH|CMAKE_PREFIX_PATH|JAVA_HOME|(?:PIP|UV)_\w+|RE_BENCH_CACHE"
    r"|(?:CUDA|NCCL|CUDNN|CUBLAS|ROCR|HIP|HSA|MIOPEN|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|XLA|JAX)_\w+"
    r"|NVIDIA_(?:VISIBLE_DEVICES|DRIVER_CAPABILITIES|TF32_OVERRIDE)|TF_(?:CPP|ENABLE|FORCE)_\w+"
    r"|(?:OMP|MKL|OPENBLAS|NUMEXPR|KMP)_\w+|CARGO_HOME|RUSTUP_HOME|RUSTUP_TOOLCHAIN"
    r"|HF_(?:HUB_DISABLE_\w+|HOME|HUB_CACHE|DATASETS_CACHE|HUB_OFFLINE|DATASETS_OFFLINE|ENDPOINT)|TRANSFORMERS_(?:CACHE|OFFLINE)"
    r"|TOKENIZERS_PARALLELISM|XDG_(?:CACHE|CONFIG|DATA)_HOME|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(?i:https?_proxy|all_proxy|no_proxy)"
)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)S?(?:_|$)|APIKEY", re.IGNORECASE
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/@\s]+@")


def child_environment(
    environment: Mapping[str, str], secrets: Iterable[str] = (), passed: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables that a script gets: those that programs commonly need, and what the operator names.

    Args:
        environment: ours.
        secrets: values that no variable may hold, whatever its name is; those of a few characters do not count.
        passed: names of further variables.
    """
    values = [secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS]
    names = set(passed)
    return {
        name: value
        for name, value in environment.items()
        if (name in names or _is_harmless(name, value)) and not any(secret in value for secret in values)
    }


def with_passwords(environment: Mapping[str, str], passed: Iterable[str] = ()) -> list[str]:
    """Return the names of common variables that scripts do not get because of a password in an address."""
    names = [name for name in environment if _PASSED.fullmatch(name) and name not in set(passed)]
    return sorted(name for name in names if _PASSWORD_IN_ADDRESS.search(environment[name]))


def _is_harmless(name: str, value: str) -> bool:
    return bool(_PASSED.fullmatch(name) and not _SECRET_NAME.search(name) and not _PASSWORD_IN_ADDRESS.search(value))


def hide_this_process() -> None:
    """Keep other processes of this user from reading our memory and first environment, through /proc or by tracing.

    Root's scripts run without the capability that would overrule this. It works on Linux only.
    """
    import ctypes  # noqa: PLC0415 - rarely needed

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def owner_for_scripts(directory: int) -> tuple[int, int] | None:
    """Return the user and group that root's scripts run as, those of an open directory; None if we are not root."""
    status = os.fstat(directory)
    return (status.st_uid, status.st_gid) if os.geteuid() == 0 else None


def home_of(owner: tuple[int, int] | None, workspace: str) -> dict[str, str]:
    """Return the variables about the user, where root's scripts run as another one."""
    if owner is None or owner[0] == os.getuid():
        return {}
    try:
        entry = pwd.getpwuid(owner[0])
    except KeyError:
        return {"HOME": workspace}
    return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}


def system_program(name: str) -> str | None:
    """Return the absolute path of a program of the system; scripts may write into directories of ``PATH``."""
    return shutil.which(name, path=_PROGRAMS)


def without_loader_variables(
    command: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Have a command set the variables of the dynamic loader itself; return it and the other variables.

    What runs before it, as root or outside of its namespaces, loads no library from where scripts may write.
    """
    loader = [f"{name}={value}" for name, value in environment.items() if name.startswith("LD_")]
    others = {name: value for name, value in environment.items() if not name.startswith("LD_")}
    shell = ["/bin/sh", "-c", f'export {shlex.join(loader)}; exec "$@"', "sh"] if loader else []
    return [*shell, *command], others


def without_privileges(command: Sequence[str], owner: tuple[int, int] | None) -> list[str]:
    """Return a command that runs another one as a user, without any capability and any way to get one.

    It is the other one as it is where ``owner`` is None or :func:`can_drop_capabilities` is false.
    """
    if owner is None or not can_drop_capabilities():
        return list(command)
    return [*_setpriv(owner), *command]


def _setpriv(owner: tuple[int, int]) -> list[str]:
    ids = [f"--reuid={owner[0]}", f"--regid={owner[1]}", "--clear-groups"]
    program = system_program("setpriv") or "setpriv"
    return [program, "--no-new-privs", *ids, "--inh-caps=-all", "--bounding-set=-all", "--"]


@functools.cache
def can_drop_capabilities() -> bool:
    """Tell whether root may run ``setpriv``; if not, that is said on stderr, once."""
    if system_program("setpriv") is not None:
        command = [*_setpriv((0, 0)), "true"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False).returncode == 0:
                return True
    print(
        f"mlab-agent: there is no setpriv in {_PROGRAMS}, or it is not permitted: scripts do not run in bubblewrap, "
        "and in a workspace that root owns they have all of root's capabilities. Install util-linux, or do not run as "
        "root.",
        file=sys.stderr,
    )
    return False
