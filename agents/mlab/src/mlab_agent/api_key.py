"""The key of the model's server, kept out of every environment.

The variables of a process can be read by its children, and their first values in ``/proc`` by every process of the same
user. So the command restarts itself without the variable, and passes the key through a pipe; then only its memory has
it.
"""

from __future__ import annotations

import os
import sys

KEY_VARIABLE = "OPENAI_API_KEY"
_OPTION = "--key-variable"
_MIN_CHARS = 6
_PIPE_VARIABLE = "MLAB_AGENT_PIPE_VARIABLE"


def key_variable_name(arguments: list[str]) -> str:
    """Return the name of the variable with the key, according to the command line."""
    for index, argument in enumerate(arguments):
        if argument == _OPTION and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(_OPTION + "="):
            return argument.removeprefix(_OPTION + "=")
    return KEY_VARIABLE


def restart_without_key(module: str, arguments: list[str]) -> None:
    """Restart this program, as ``python -m module arguments``, if the key is in its environment."""
    variable = key_variable_name(arguments)
    key = os.environ.get(variable)
    if not key:
        return
    read_end, write_end = os.pipe()
    os.write(write_end, key.encode())
    os.close(write_end)
    os.set_inheritable(read_end, True)  # noqa: FBT003 - it is the setting itself
    is_long = len(key) >= _MIN_CHARS  # anything shorter is in values by chance
    environment = {
        name: value for name, value in os.environ.items() if name != variable and not (is_long and key in value)
    }
    environment[_PIPE_VARIABLE] = str(read_end)
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: nothing is imported from the current directory
    os.execve(sys.executable, [sys.executable, "-P", "-m", module, *arguments], environment)  # noqa: S606 - ourselves


def read_key(variable: str = KEY_VARIABLE) -> str:
    """Return the key, empty if there is none; afterwards it is in no environment."""
    read_end = os.environ.pop(_PIPE_VARIABLE, None)
    if read_end is None:
        return os.environ.pop(variable, "").strip()
    with os.fdopen(int(read_end), "rb") as pipe:
        return pipe.read().decode().strip()
