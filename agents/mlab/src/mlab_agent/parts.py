"""The parts of a run that its settings name: the clients of its models, and its workspace."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mlab_agent.models import LanguageModel, ModelSettings, Prices, Spending, known_context, known_prices
from mlab_agent.settings import OPENAI_URL, RunSettings, SettingsError
from mlab_agent.workspaces.local import LocalWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mlab_agent.client import Model
    from mlab_agent.clock import Waits
    from mlab_agent.settings import ModelOptions
    from mlab_agent.trace import Trace
    from mlab_agent.workspaces.base import Workspace

_DEFAULT_CONTEXT = 100_000


class Clients(NamedTuple):
    """The clients; several may be the same one."""

    model: LanguageModel
    fast: LanguageModel
    edit: LanguageModel


def make_clients(
    settings: RunSettings,
    keys: Mapping[str, str],
    spending: Spending,
    emit: Callable[[str, dict[str, Any]], None],
    seconds_left: Callable[[], float | None],
    *,
    waits: Waits,
) -> Clients:
    """Return the clients of a run, which count what they spend together.

    Args:
        settings: of the run.
        keys: by the variables that they come from.
        spending: of the run.
        emit: called with the events of calls.
        seconds_left: of the run.
        waits: of the run.

    Raises:
        SettingsError: if a key is missing, or a price that the cap on dollars needs.
    """
    needed = check_clients(settings, keys)
    from mlab_agent.client import Model  # noqa: PLC0415 - takes a second, and not all commands need it

    made: dict[ModelOptions, Model] = {}
    for options, model_settings, key in needed:
        if options not in made:
            made[options] = Model(model_settings, key, spending, emit, seconds_left, waits=waits)
    return Clients(*(made[options] for options, _settings, _key in needed))


def check_clients(settings: RunSettings, keys: Mapping[str, str]) -> list[tuple[ModelOptions, ModelSettings, str]]:
    """Return the options, settings and key of each client, as far as they can be known without asking the models.

    Raises:
        SettingsError: as from :func:`make_clients`.
    """
    fast = settings.fast_model or settings.model
    roles = [("", settings.model), ("fast-", fast), ("edit-", settings.edit_model or fast)]
    return [
        (options, _model_settings(settings, role, options), _key(settings, role, options, keys))
        for role, options in roles
    ]


def _model_settings(settings: RunSettings, role: str, options: ModelOptions) -> ModelSettings:
    prices = Prices(*options.price) if options.price else known_prices(options.name)
    if prices is None and settings.max_dollars is not None:
        raise SettingsError(
            f"a cap on dollars needs prices, and those of {options.name} are not known: give --{role}price IN,OUT"
        )
    return ModelSettings(
        name=options.name,
        base_url=options.base_url or settings.base_url,
        prices=prices,
        context_tokens=options.context_tokens or known_context(options.name) or _DEFAULT_CONTEXT,
        max_output_tokens=options.max_output_tokens,
        temperature=options.temperature,
        seed=settings.seed,
        timeout_s=settings.call_timeout_s,
        attempts=settings.attempts,
        first_wait_s=settings.first_wait_s,
    )


def _key(settings: RunSettings, role: str, options: ModelOptions, keys: Mapping[str, str]) -> str:
    """Return the key of a model's server, empty if it has none; no other server gets the key of the run's."""
    url = options.base_url or settings.base_url
    variable = options.key_variable or (settings.key_variable if url == settings.base_url else None)
    key = keys.get(variable, "") if variable else ""
    if options.key_variable and not key:
        raise SettingsError(f"the key of {options.name} is to come from {variable}, which the environment lacks")
    if not key and url.rstrip("/") == OPENAI_URL:
        source = f"set {variable}" if variable else f"name the variable that has it with --{role}key-variable"
        raise SettingsError(f"{url} needs a key: {source}, or give --{role}base-url for another server")
    return key


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
        SettingsError: if a variable is not set.
        WorkspaceError: if it cannot be opened.
    """
    if settings.ors is not None:
        from mlab_agent.workspaces.ors import OrsWorkspace  # noqa: PLC0415 - not all runs need its client
        from mlab_agent.workspaces.ors_session import OrsSession  # noqa: PLC0415 - as above

        session = OrsSession(
            settings.ors,
            settings.task or "",
            environment=settings.environment,
            split=settings.split,
            token=_token(settings),
            secrets=_secrets(settings),
            state=directory,
            wait_s=settings.server_wait_seconds,
            report=report,
            waits=waits,
        )
        trace.redact(session.sid)
        try:
            workspace = OrsWorkspace(
                session,
                state=directory,
                python=settings.python,
                read_only=settings.read_only,
                snapshot_excludes=settings.left_out,
            )
        except BaseException:
            session.close(left_open=session.joined)
            raise
        return workspace, "same" if session.joined else "new"
    workdir = Path(settings.workdir or "").resolve()
    own_files = [str(directory.resolve().relative_to(workdir))] if directory.resolve().is_relative_to(workdir) else []
    local = LocalWorkspace(
        workdir,
        state=directory,
        python=settings.python,
        read_only=settings.read_only,
        submission=Path(settings.submission) if settings.submission else None,
        secrets=secrets,
        snapshot_excludes=[*settings.left_out, *own_files],
        protected=[directory.resolve(), *_own_code(settings.python)],
        pass_variables=settings.pass_variables,
    )
    if not local.contained:
        print(
            "mlab-agent: bubblewrap does not work here, so scripts can change all files of this user, those of the "
            "agent too: use a container, or install bubblewrap",
            file=sys.stderr,
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


def _token(settings: RunSettings) -> str | None:
    token = os.environ.get(settings.token_variable) if settings.token_variable else None
    if settings.token_variable and not token:
        raise SettingsError(
            f"the server's token is to come from {settings.token_variable}, which the environment lacks: set it"
        )
    return token


def _secrets(settings: RunSettings) -> dict[str, str]:
    missing = [variable for variable in settings.secrets.values() if not os.environ.get(variable)]
    if missing:
        raise SettingsError(f"the session's secrets are to come from {', '.join(missing)}, which the environment lacks")
    return {name: os.environ[variable] for name, variable in settings.secrets.items()}
