"""The keys of the models' servers, kept out of every environment.

The variables of a process can be read by its children, and their first values in ``/proc`` by every process of the same
user. So the command restarts itself without the variables, and passes the keys through a pipe; then only its memory has
them.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KEY_VARIABLE = "OPENAI_API_KEY"
_OPTIONS = ("--key-variable", "--fast-key-variable", "--edit-key-variable")
_PIPE_VARIABLE = "MLAB_AGENT_PIPE_VARIABLE"


def key_variables(arguments: Sequence[str]) -> list[str]:
    """Return the names of the variables with keys, by the command line and the settings of a run that it resumes."""
    names = [KEY_VARIABLE]
    for index, argument in enumerate(arguments):
        option, _equals, value = argument.partition("=")
        if option in _OPTIONS:
            names += [value] if value else arguments[index + 1 : index + 2]
    if arguments and arguments[0] == "resume":
        for argument in arguments[1:]:
            names += _stored_variables(argument)
    return list(dict.fromkeys(names))


def _stored_variables(run: str) -> list[str]:
    from pathlib import Path  # noqa: PLC0415 - the sooner the restart, the better

    from mlab_agent.trace import TRACE_FILE, TraceError, last_settings  # noqa: PLC0415 - as above

    try:
        settings = last_settings(Path(run) / TRACE_FILE)
    except TraceError:
        return []
    models = [settings, *(settings.get(name) or {} for name in ("fast_model", "edit_model"))]
    return [model["key_variable"] for model in models if model.get("key_variable")]


def restart_without_keys(module: str, arguments: list[str]) -> None:
    """Restart this program, as ``python -m module arguments``, if a key is in its environment."""
    keys = {name: os.environ[name] for name in key_variables(arguments) if os.environ.get(name)}
    if not keys:
        return
    from mlab_agent.trace import MIN_SECRET_CHARS  # noqa: PLC0415 - as above

    read_end, write_end = os.pipe()
    os.write(write_end, json.dumps(keys).encode())
    os.close(write_end)
    os.set_inheritable(read_end, True)  # noqa: FBT003 - it is the setting itself
    secrets = [key for key in keys.values() if len(key) >= MIN_SECRET_CHARS]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in keys and not any(secret in value for secret in secrets)
    }
    environment[_PIPE_VARIABLE] = str(read_end)
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: nothing is imported from the current directory
    os.execve(sys.executable, [sys.executable, "-P", "-m", module, *arguments], environment)  # noqa: S606 - ourselves


def read_keys(variables: Iterable[str]) -> dict[str, str]:
    """Return the keys by their variables, without those that are not set; afterwards they are in no environment."""
    keys: dict[str, str] = {}
    read_end = os.environ.pop(_PIPE_VARIABLE, None)
    if read_end is not None:
        with os.fdopen(int(read_end), "rb") as pipe:
            keys = json.loads(pipe.read())
    for name in variables:
        if name in os.environ:
            keys[name] = os.environ.pop(name)
    return {name: key.strip() for name, key in keys.items() if key.strip()}
