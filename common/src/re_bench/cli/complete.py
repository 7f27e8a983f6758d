"""Completion of words by the shell: commands and options by argcomplete, and names of tasks, profiles and solutions.

A shell asks the command itself at every tab, so that nothing is imported here that the answer does not need.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli.command import Command
from re_bench.cli.parser import all_parsers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from re_bench.cli.parser import Parser

SHELLS = ("bash", "zsh", "fish")
_TASKS = ("task", "tasks", "what")
"""Where an argument names a task, by the name of its value."""


def complete(parser: Parser) -> None:
    """Answer the shell and end, if it is the shell that asks; else do nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    completers: dict[str, Any] = {"profile": profiles, "variant": solutions, "cheats": cheats}
    completers |= dict.fromkeys(_TASKS, tasks)
    for one in all_parsers(parser):
        for action in one._actions:  # noqa: SLF001 - argparse has no other way to its arguments
            if action.dest in completers and not action.choices:
                action.completer = completers[action.dest]  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long")


def tasks(**_: Any) -> Iterable[str]:
    """Return the names of the tasks that are here."""
    return _directories()


def profiles(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return the profiles of the tasks that are named before, or of all."""
    manifests = [_manifest(directory) for directory in _named(parsed_args)]
    return dict.fromkeys(["auto", *(name for manifest in manifests for name in manifest.get("profiles", {}))])


def solutions(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return our solutions to the task that is named before."""
    return ["baseline", "reference", *(f"cheats/{name}" for name in cheats(parsed_args))]


def cheats(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return the cheats of the task that is named before."""
    return dict.fromkeys(
        sorted(path.name for task in _named(parsed_args) for path in task.glob("cheats/*") if path.is_dir())
    )


def _named(options: argparse.Namespace) -> list[Path]:
    words = [getattr(options, name, None) or [] for name in _TASKS]
    names = [name for word in words for name in ([word] if isinstance(word, str) else word)]
    known = _directories()
    chosen = [known.get(name, Path(name)) for name in names if name in known or (Path(name) / "task.toml").is_file()]
    return chosen or list(known.values())


def _directories() -> dict[str, Path]:
    """Return the directories of the tasks by name, or nothing if they cannot be listed."""
    from re_bench.errors import ReBenchError
    from re_bench.task.discovery import find_tasks

    with suppress(ReBenchError):
        return {name: task.directory for name, task in find_tasks().items()}
    return {}


def _manifest(directory: Path) -> dict[str, Any]:
    import tomllib

    with suppress(OSError, ValueError):
        return tomllib.loads((directory / "task.toml").read_text(encoding="utf-8"))
    return {}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def _completion(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["re-bench"], shell=options.shell))
    return 0


COMMANDS = (
    Command(
        "completion",
        "print what makes a shell complete commands, options and names of tasks",
        _options,
        _completion,
        group="everybody",
        examples=(
            'eval "$(re-bench completion bash)"                  # in ~/.bashrc',
            'eval "$(re-bench completion zsh)"                   # in ~/.zshrc, after compinit',
            "re-bench completion fish > ~/.config/fish/completions/re-bench.fish",
        ),
    ),
)
