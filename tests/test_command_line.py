"""The command line as a whole: its help, its completion, what it suggests, and one meaning for each option."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from re_bench.cli.command import GROUPS
from re_bench.cli.main import all_commands, main, make_parser
from re_bench.cli.parser import all_parsers, subparsers_of
from re_bench.scoring.score import make_parser as score_parser
from re_bench.task.discovery import find_task

COMMANDS = all_commands()
PARSER = make_parser(COMMANDS.values())
PARSERS = [*all_parsers(PARSER)][1:]
LEAVES = [parser for parser in PARSERS if not subparsers_of(parser)]
PROGRAM = str(Path(sys.executable).parent / "re-bench")
DIFFERENT = {"--out": "what is written differs, and whether it is a file or a directory"}
"""Options that several commands have, and that need not be described in the same words."""
WITHOUT_JSON = {"re-bench view": "it shows a browser", "re-bench completion": "it prints what a shell reads"}


def shown_options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options of a parser that its help shows, by their long names."""
    return {
        name: action
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for name in action.option_strings
        if name.startswith("--") and name != "--help"
    }


def described(action: argparse.Action) -> tuple[object, ...]:
    """Return what has to be the same wherever an option is: whether it has a value and which, and its first words."""
    text = (action.help or "").partition("(default")[0].partition(";")[0].strip()
    return action.nargs, action.metavar, text


def test_an_option_means_the_same_in_every_command_and_scorer() -> None:
    meanings: dict[str, dict[tuple[object, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    scorer = score_parser(find_task("triton_cumsum"))
    for parser in (*PARSERS, scorer):
        for name, action in shown_options(parser).items():
            if not (parser is scorer and name == "--solution"):  # validate's stands beside ours
                meanings[name][described(action)].append(parser.prog)
    assert {name: dict(found) for name, found in meanings.items() if len(found) > 1 and name not in DIFFERENT} == {}
    assert {name for name in DIFFERENT if len(meanings[name]) < 2} == set()


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_argument_is_explained(parser: argparse.ArgumentParser) -> None:
    silent = [
        action.dest for action in parser._actions if not action.help and action.metavar not in {"ACTION", "FORMAT"}
    ]
    assert silent == []
    unnamed = [name for name, action in shown_options(parser).items() if action.nargs != 0 and not action.choices]
    assert [name for name in unnamed if shown_options(parser)[name].metavar is None] == []
    assert parser.description
    assert parser.description.endswith((".", "\n"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_for_somebody_and_has_examples_that_parse(name: str) -> None:
    command = COMMANDS[name]
    assert command.group in GROUPS
    assert command.examples
    for line in command.examples:
        found = re.search(r"re-bench ([^#>)]+)", line)
        assert found, line
        assert PARSER.parse_args(found[1].split()).run is command.run


def test_whatever_has_results_has_them_as_json() -> None:
    without = {parser.prog for parser in LEAVES if "--json" not in shown_options(parser)}
    assert without == set(WITHOUT_JSON)


def test_the_help_lists_every_command_once_under_its_users() -> None:
    lines = PARSER.format_help().splitlines()
    assert [line for line in lines if line.startswith("for ")] == [f"for {group}:" for group in GROUPS]
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted(COMMANDS)
    assert max(map(len, lines)) <= 110


def test_old_names_of_options_still_work() -> None:
    for words, name, value in (
        (["regrade", "a", "--into", "b"], "into", Path("b")),
        (["scan", "a", "--model", "m"], "judge_model", "m"),
        (["scan", "a", "--key-variable", "V"], "judge_key_variable", "V"),
        (["bundle", "a", "--with", "agent", "--include", "workspaces"], "optional", ["agent", "workspaces"]),
        (["serve", "--scorings", "2"], "jobs", 2),
    ):
        assert getattr(PARSER.parse_args(words), name) == value


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["vaildate"], "did you mean validate?"),
        (["sessions", "lst"], "did you mean list?"),
        (["export", "harbour"], "did you mean harbor?"),
        (["validate", "triton_cumsum", "--sandbx", "none"], "did you mean --sandbox?"),
        (["validate", "--sandbox", "bublewrap"], "did you mean bubblewrap?"),
        (["validate", "tritn_cumsum"], "did you mean triton_cumsum?"),
        (["score", "triton_cumsum", ".", "--profile", "gpuu"], "did you mean gpu?"),
        (["workspace", "rust_codecontests", "/nowhere/x", "--profile", "cpu-test1"], "did you mean cpu-test2?"),
        (["workspace", "triton_cumsum", "/nowhere/x", "--with", "refrence"], "did you mean reference?"),
        (["workspace", "triton_cumsum", "/nowhere/x", "--with", "alias_inputs"], "did you mean cheats/alias_input?"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_nearest(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(words)
    told = capsys.readouterr().err
    assert (raised.value.code, hint in told) == (2, True), told


def test_the_versions_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first.split()[0] == "re-bench"
    assert f"python {'.'.join(map(str, sys.version_info[:3]))}" in others
    for words in (["--version", "--json"], ["--json", "--version"]):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["re-bench-common"] == first.split()[1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("re-bench val", {"validate"}),
        ("re-bench validate triton", {"triton_cumsum"}),
        ("re-bench score triton_cumsum . --profile ", {"auto", "cpu", "gpu"}),
        ("re-bench workspace triton_cumsum x --with cheats/alias", {"cheats/alias_input"}),
        ("re-bench regrade x --g", {"--gpu-type"}),
    ],
)
def test_bash_completes_words(line: str, expected: set[str]) -> None:
    script = (
        f'eval "$(re-bench completion bash)"; COMP_LINE="{line}"; COMP_POINT={len(line)}; COMP_TYPE=9; '
        '_python_argcomplete re-bench; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {"PATH": f"{Path(PROGRAM).parent}:/usr/bin:/bin"}
    command = ["bash", "--norc", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert {word.strip() for word in done.stdout.splitlines()} == expected, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_of_theirs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert {"zsh": "compdef", "fish": "complete --command re-bench"}[shell] in script
