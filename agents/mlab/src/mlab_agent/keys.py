"""The key of the model, kept out of every environment.

A variable of a process can be read by its children, and its first value in ``/proc`` by every process of the same user.
So the command starts itself anew without it, and hands it over through a pipe; then only its memory has it.
"""

from __future__ import annotations

import os
import sys

__all__ = ["KEY_VARIABLE", "move_key", "take_key", "variable_named_in"]

KEY_VARIABLE = "OPENAI_API_KEY"
_OPTION = "--key-variable"
_SHORTEST = 6
_HANDED_OVER = "MLAB_AGENT_HANDED_OVER"


def variable_named_in(arguments: list[str]) -> str:
    """Return the name of the variable with the key, as the command line has it."""
    for index, argument in enumerate(arguments):
        if argument == _OPTION and index + 1 < len(arguments):
            return arguments[index + 1]
        if argument.startswith(_OPTION + "="):
            return argument.removeprefix(_OPTION + "=")
    return KEY_VARIABLE


def move_key(module: str, arguments: list[str]) -> None:
    """Start this program anew, as ``python -m module arguments``, if the key is in its environment."""
    variable = variable_named_in(arguments)
    key = os.environ.get(variable)
    if not key:
        return
    reading, writing = os.pipe()
    os.write(writing, key.encode())
    os.close(writing)
    os.set_inheritable(reading, True)  # noqa: FBT003 - it is the setting itself
    hidden = key if len(key) >= _SHORTEST else None  # anything shorter is in values by chance
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != variable and (hidden is None or hidden not in value)
    }
    environment[_HANDED_OVER] = str(reading)
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: nothing is imported from where the user happens to be
    os.execve(sys.executable, [sys.executable, "-P", "-m", module, *arguments], environment)  # noqa: S606 - ourselves


def take_key(variable: str = KEY_VARIABLE) -> str:
    """Return the key, empty if there is none; after this it is in no environment."""
    reading = os.environ.pop(_HANDED_OVER, None)
    if reading is None:
        return os.environ.pop(variable, "").strip()
    with os.fdopen(int(reading), "rb") as pipe:
        return pipe.read().decode().strip()
