"""Open the workspace of a run: a directory here, or a session of an ORS server."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.settings import RunSettings, SettingsError
from mlab_agent.workspaces.local import LocalWorkspace
from mlab_agent.workspaces.privileges import with_passwords

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlab_agent.trace import Trace
    from mlab_agent.waits import Waits
    from mlab_agent.workspaces.base import Workspace


def open_workspace(
    settings: RunSettings,
    directory: Path,
    trace: Trace,
    secrets: Sequence[str],
    report: Callable[[str], None],
    *,
    waits: Waits,
) -> tuple[Workspace, str | None]:
    """Return the workspace, and for a server whether its session is the ``same`` as before or a ``new`` one.

    Args:
        settings: of the run.
        directory: of the run.
        trace: which is not to have the session's id.
        secrets: values that no script may see.
        report: called with a sentence when the server goes away and comes back.
        waits: of the run.

    Raises:
        SettingsError: if what the settings name is not there.
        WorkspaceError: if it cannot be opened.
    """
    if settings.ors is not None:
        return _session(settings, settings.ors, directory, trace, report, waits=waits)
    assert settings.workdir is not None
    workdir = Path(settings.workdir).resolve()
    inside = directory.resolve().is_relative_to(workdir)
    for name in with_passwords(os.environ, settings.pass_variables):
        print(
            f"mlab-agent: scripts do not get {name}, which holds a password; --pass-variable {name} gives it to them",
            file=sys.stderr,
        )
    own_files = [str(directory.resolve().relative_to(workdir))] if inside else []
    local = LocalWorkspace(
        workdir,
        state=directory / "home",
        python=settings.python,
        read_only=settings.read_only,
        submission=Path(settings.submission) if settings.submission else None,
        secrets=secrets,
        snapshot_excludes=[*settings.left_out, *own_files],
        protected=[directory.resolve(), *_own_code(settings.python)],
        pass_variables=settings.pass_variables,
    )
    return local, None


def _own_code(python: str | None) -> list[Path]:
    """Return what the agent runs from: its package, and its virtual environment where scripts have another one."""
    package = Path(__file__).resolve().parent
    program = shutil.which(python or "python") or shutil.which("python3")
    is_shared = program is not None and Path(program).absolute().is_relative_to(sys.prefix)
    return [package] if is_shared or sys.prefix == sys.base_prefix else [package, Path(sys.prefix)]


def server_secrets(settings: RunSettings) -> list[str]:
    """Return what the server gets from the environment, which no trace may have: its token, the session's secrets."""
    return [*filter(None, [_token(settings)]), *_secrets(settings).values()]


def _session(
    settings: RunSettings, url: str, directory: Path, trace: Trace, report: Callable[[str], None], *, waits: Waits
) -> tuple[Workspace, str]:
    assert settings.task is not None
    try:
        from mlab_agent.workspaces.ors import OrsWorkspace  # noqa: PLC0415 - seconds, and an extra
    except ImportError:
        raise SettingsError("an ORS server needs the client openreward: pip install 'mlab-agent[ors]'") from None
    session = OrsWorkspace(
        url,
        settings.task,
        environment=settings.environment,
        split=settings.split,
        token=_token(settings),
        secrets=_secrets(settings),
        state=directory / "home",
        python=settings.python,
        read_only=settings.read_only,
        snapshot_excludes=settings.left_out,
        wait_s=settings.server_wait_seconds,
        report=report,
        waits=waits,
    )
    trace.redact(session.session_id)
    return session, "same" if session.joined else "new"


def _token(settings: RunSettings) -> str | None:
    if settings.token_variable is None:
        return None
    token = os.environ.get(settings.token_variable)
    if not token:
        raise SettingsError(
            f"the server's token is to come from {settings.token_variable}, which the environment lacks: set it"
        )
    return token


def _secrets(settings: RunSettings) -> dict[str, str]:
    missing = [variable for variable in settings.secrets.values() if not os.environ.get(variable)]
    if missing:
        raise SettingsError(f"the session's secrets are to come from {', '.join(missing)}, which the environment lacks")
    return {name: os.environ[variable] for name, variable in settings.secrets.items()}
