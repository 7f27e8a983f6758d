"""The clients of a run's models: for the steps, for questions and summaries, and for edits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mlab_agent.models import LanguageModel, ModelSettings, Prices, Spending, known_context, known_prices
from mlab_agent.settings import OPENAI_URL, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mlab_agent.models.client import Model
    from mlab_agent.settings import ModelOptions, RunSettings
    from mlab_agent.waits import Waits

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
    made: dict[ModelOptions, Model] = {}

    def client(role: str, options: ModelOptions) -> Model:
        if options not in made:
            model_settings = _model_settings(settings, role, options)
            key = _key(settings, role, options, keys)
            from mlab_agent.models.client import Model  # noqa: PLC0415 - takes a second, and not all commands need it

            made[options] = Model(model_settings, key, spending, emit, seconds_left, waits=waits)
        return made[options]

    return Clients(*(client(role, options) for role, options in _roles(settings)))


def check_clients(settings: RunSettings, keys: Mapping[str, str]) -> None:
    """Do nothing if the models of a run could be asked, as far as that can be known without asking them.

    The package of their client is not imported.

    Raises:
        SettingsError: as from :func:`make_clients`.
    """
    for role, options in _roles(settings):
        _model_settings(settings, role, options)
        _key(settings, role, options, keys)


def _roles(settings: RunSettings) -> list[tuple[str, ModelOptions]]:
    """Return the options of the clients, in their order, each with what its own arguments begin with."""
    fast = settings.fast_model or settings.model
    return [("", settings.model), ("fast-", fast), ("edit-", settings.edit_model or fast)]


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
    shared = options.base_url is None or options.base_url == settings.base_url
    variable = options.key_variable or (settings.key_variable if shared else None)
    key = keys.get(variable, "") if variable else ""
    if options.key_variable and not key:
        raise SettingsError(f"the key of {options.name} is to come from {variable}, which the environment lacks")
    url = options.base_url or settings.base_url
    if not key and url.rstrip("/") == OPENAI_URL:
        source = f"set {variable}" if variable else f"name the variable that has it with --{role}key-variable"
        raise SettingsError(f"{url} needs a key: {source}, or give --{role}base-url for another server")
    return key
