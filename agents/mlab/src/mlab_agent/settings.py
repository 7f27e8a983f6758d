"""The settings of a run: options of the command line, and the first event of the trace, without any key."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI_URL = "https://api.openai.com/v1"
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s)(?:ours?|ays?|in(?:utes?)?|ec(?:onds?)?)?\s*")
_LIST_NAME = "read_only_files.txt"  # MLAgentBench's tasks have one

FILES = Group("Where the files are", sort_key=1)
MODELS = Group("Models", sort_key=2)
ROLES = Group("Other models for questions and edits", sort_key=3)
LIMITS = Group("Limits and scripts", sort_key=4)


class SettingsError(Exception):
    """The settings of a run are wrong; the message says why and what to do."""


def _seconds(value: Any) -> Any:
    if not isinstance(value, str) or re.fullmatch(r"\d+(?:\.\d+)?", value):
        return value
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", value):
        raise ValueError(f"{value!r} is no time: write 5h, 90m, 30s or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION.findall(value))


def _price(value: Any) -> Any:
    if isinstance(value, str):
        value = [value]
    is_text = isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], str)
    if not is_text:
        return value
    if value[0].count(",") != 1:
        raise ValueError(
            f"{value[0]!r} is no price: write the dollars a million prompt tokens, a comma, those of completion tokens"
        )
    return value[0].split(",")


def _named(*prefixes: str) -> Callable[[str], str]:
    """Return the names of a model's options: ``--model``, ``--fast-price`` and so on."""

    def name(field: str) -> str:
        return "-".join([*prefixes, "model" if field == "name" else field.replace("_", "-")])

    return name


class ModelOptions(BaseModel):
    """How a model is called; None means the known value of the model, or the server's default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    """The model's name."""
    base_url: Annotated[str | None, Parameter(parse=False)] = None
    key_variable: Annotated[str | None, Parameter(parse=False)] = None
    price: Annotated[tuple[float, float] | None, BeforeValidator(_price), Parameter(n_tokens=1)] = None
    """IN,OUT: dollars a million prompt tokens, and completion tokens."""
    context_tokens: int | None = Field(default=None, ge=1_000)
    """How much it reads and writes together."""
    max_output_tokens: int = Field(default=8_192, ge=16)
    """The longest reply (default: 8192)."""
    temperature: float | None = None
    """The temperature (default: the server's)."""


class OtherModel(ModelOptions):
    """A model besides that of the steps, which may have a server of its own."""

    base_url: str | None = None
    """Its server, if it is another one than that of the run."""
    key_variable: str | None = None
    """The environment variable with the key of that server."""


Seconds = Annotated[float, BeforeValidator(_seconds)]


class ChangeableSettings(BaseModel):
    """The settings that a resumed run may change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ors: Annotated[str | None, Parameter(group=FILES)] = None
    """The address of an Open Reward Standard server."""
    server_wait_seconds: Annotated[Seconds, Parameter(name="--server-wait", group=LIMITS)] = Field(default=600.0, ge=0)
    """How long to wait for an ORS server that does not answer (default: 10m)."""
    python: Annotated[str | None, Parameter(group=LIMITS)] = None
    """The program that runs Python scripts (default: python of the workspace)."""

    base_url: Annotated[str, Parameter(group=MODELS)] = Field(
        default_factory=lambda: os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    )
    """The models' server (default: OPENAI_BASE_URL, otherwise OpenAI's)."""
    key_variable: Annotated[str | None, Parameter(group=MODELS)] = KEY_VARIABLE
    """The environment variable with its key (default: OPENAI_API_KEY)."""
    model: Annotated[ModelOptions, Parameter(name="*", name_transform=_named(), group=MODELS)] = ModelOptions()
    fast_model: Annotated[OtherModel | None, Parameter(name="*", name_transform=_named("fast"), group=ROLES)] = None
    """For questions about files and for summaries; None for ``model``."""
    edit_model: Annotated[OtherModel | None, Parameter(name="*", name_transform=_named("edit"), group=ROLES)] = None
    """For edits; None for the fast model."""

    max_steps: Annotated[int | None, Parameter(group=LIMITS)] = Field(default=50, ge=1)
    """The number of actions (default: 50)."""
    max_seconds: Annotated[Seconds | None, Parameter(name="--max-time", group=LIMITS)] = Field(
        default=5 * 3600.0, gt=0
    )  # fmt: skip
    """Working time, such as 90m (default: 5h); waiting for a server that refuses or does not answer is left out."""
    max_dollars: Annotated[float | None, Parameter(name="--max-cost", group=LIMITS)] = Field(default=None, ge=0)
    """Dollars of all calls together (default: no cap)."""
    max_tokens: Annotated[int | None, Parameter(group=LIMITS)] = Field(default=None, ge=0)
    """Tokens of all calls together (default: no cap)."""
    script_seconds: Annotated[Seconds, Parameter(name="--script-time", group=LIMITS)] = Field(default=3600.0, gt=0)
    """The longest time of a script (default: 1h)."""
    repeat_remark: Annotated[int, Parameter(group=LIMITS)] = Field(default=3, ge=0)
    """Tell the model when it did the same so many times in a row; 0 for never (default: 3)."""


class RunSettings(ChangeableSettings):
    """The settings of one run."""

    workdir: Annotated[str | None, Parameter(group=FILES)] = None
    """A directory of this machine to work in."""
    submission: Annotated[str | None, Parameter(group=FILES)] = None
    """The file for the answer (default: submission.txt in the directory)."""
    read_only: Annotated[tuple[str, ...], Parameter(group=FILES)] = ()
    """Pattern of files that the agent must not write; repeat."""
    left_out: Annotated[tuple[str, ...], Parameter(group=FILES)] = ()
    """Pattern of files that snapshots leave out; repeat."""
    pass_variables: Annotated[tuple[str, ...], Parameter(name="--pass-variable", group=FILES)] = ()
    """Environment variable for scripts besides common ones such as PATH, LANG, CUDA_*; repeat."""
    task: Annotated[str | None, Parameter(group=FILES)] = None
    """The id of the server's task."""
    environment: Annotated[str, Parameter(group=FILES)] = "rebench"
    """The server's environment (default: rebench)."""
    split: Annotated[str, Parameter(group=FILES)] = "test"
    """The split that the task is in (default: test)."""
    token_variable: Annotated[str | None, Parameter(group=FILES)] = None
    """The environment variable with the server's token."""
    secrets: Annotated[dict[str, str], Parameter(parse=False)] = Field(default_factory=dict)
    """Secrets of the session by name, each with the environment variable that has its value."""

    seed: Annotated[int | None, Parameter(group=MODELS)] = None
    """Sent with every call; servers that know it give similar replies to similar prompts, most not the same."""
    tools: Annotated[Literal["auto", "native", "text"], Parameter(group=MODELS)] = "auto"
    """How actions are written: as native tool calls, as text, or as the server allows (default: auto)."""
    recent_steps: Annotated[int, Parameter(group=MODELS)] = Field(default=8, ge=1)
    """How many steps are shown word for word (default: 8)."""
    log_chars: Annotated[int, Parameter(parse=False)] = Field(default=12_000, ge=2_000)
    """The longest summary of the steps before the recent ones."""
    call_timeout_s: Annotated[float, Parameter(parse=False)] = Field(default=600.0, gt=0)
    attempts: Annotated[int, Parameter(parse=False)] = Field(default=8, ge=1)
    first_wait_s: Annotated[float, Parameter(parse=False)] = Field(default=1.0, ge=0)
    max_malformed: Annotated[int, Parameter(parse=False)] = Field(default=10, ge=1)
    """So many replies in a row that cannot be acted on end the run."""

    @property
    def key_variables(self) -> list[str]:
        """The environment variables that have keys of models' servers."""
        servers = [self, self.model, self.fast_model, self.edit_model]
        return [server.key_variable for server in servers if server and server.key_variable]

    def checked(self) -> RunSettings:
        """Return the same settings, with absolute paths.

        Raises:
            SettingsError: if they do not say which model is to work where.
        """
        if (self.workdir is None) == (self.ors is None) or (self.ors and not self.task):
            raise SettingsError("give either --workdir with --task-file, or --ors with --task")
        if not self.model.name:
            raise SettingsError("give --model NAME")
        made: dict[str, Any] = {}
        for role, model in (("fast", self.fast_model), ("edit", self.edit_model)):
            if model is not None and not model.name:
                raise SettingsError(f"the options of the {role} model need --{role}-model NAME")
            if model is not None:
                common = {name: getattr(self.model, name) for name in ("max_output_tokens", "temperature")}
                made[f"{role}_model"] = model.model_copy(update=common | model.model_dump(exclude_unset=True))
        made |= {name: str(Path(path).resolve()) for name in ("workdir", "submission") if (path := getattr(self, name))}
        if self.workdir is not None and self.python is not None:  # the directory may be another one later
            made["python"] = str(Path(shutil.which(self.python) or self.python).absolute())
        return self.model_copy(update=made)

    def changed(self, given: ChangeableSettings) -> RunSettings:
        """Return the settings with those that were given on the command line; a key is for one server only."""
        names = given.model_fields_set - {"model", "fast_model", "edit_model"}
        changes: dict[str, Any] = {name: getattr(given, name) for name in names}
        if changes.get("base_url", self.base_url) != self.base_url:
            changes.setdefault("key_variable", None)
        base_url = changes.get("base_url", self.base_url)
        changes["model"] = self.model.model_copy(update=given.model.model_dump(exclude_unset=True))
        for role in ("fast_model", "edit_model"):
            before: OtherModel | None = getattr(self, role)
            options: OtherModel | None = getattr(given, role)
            if before is None or (options is not None and options.name):
                changes[role] = options
                continue
            update = options.model_dump(exclude_unset=True) if options else {}
            if (update.get("base_url") or before.base_url or base_url) != (before.base_url or self.base_url):
                update.setdefault("key_variable", None)
            changes[role] = before.model_copy(update=update)
        return self.model_copy(update=changes).checked()


def read_only_patterns(file: Path | None, task_file: Path | None, workdir: str | None) -> tuple[str, ...]:
    """Return the patterns of a list of read-only files, one a line.

    Args:
        file: the list; None for that of the task: beside its text, or in ``scripts`` of the workspace.
        task_file: the task's text.
        workdir: the workspace.

    Raises:
        SettingsError: if the list cannot be read.
    """
    places = [task_file.parent if task_file else None, Path(workdir, "scripts") if workdir else None]
    lists = [place / _LIST_NAME for place in places if place is not None]
    file = file or next((path for path in lists if path.is_file()), None)
    if file is None:
        return ()
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise SettingsError(f"the list of read-only files {file} cannot be read: {error.strerror}") from None
    return tuple(line.strip() for line in lines if line.strip())
