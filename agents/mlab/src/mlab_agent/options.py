"""The options of the command line, and the settings that they make."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path

from mlab_agent import __version__
from mlab_agent.settings import KEY_VARIABLE, OPENAI_URL, ModelOptions, RunSettings, SettingsError
from mlab_agent.workspaces.base import list_of_task, read_patterns

_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|s)(?:ours?|ays?|in(?:utes?)?|ec(?:onds?)?)?\s*")
_CHANGEABLE_SETTINGS = (
    "ors",
    "base_url",
    "key_variable",
    "python",
    "max_steps",
    "max_seconds",
    "max_dollars",
    "max_tokens",
    "script_seconds",
    "server_wait_seconds",
    "repeat_remark",
)
_ROLES = {"fast": "questions about files and summaries", "edit": "edits of scripts"}
_MODEL_OPTIONS = ("price", "context_tokens", "base_url", "key_variable")

_USAGE = """\
mlab-agent --workdir DIR --task-file FILE --model NAME [options]
       mlab-agent --ors URL --task ID --model NAME [options]
       mlab-agent resume RUN [--from-step N] [options]
       mlab-agent show TRACE [--whole]
       mlab-agent files RUN [NAME] [--step N] [--out DIR]
       mlab-agent demo [--model NAME]
"""
_STATUS = """\
Exit status: 0 after a final answer, 3 at a limit, 4 after SIGUSR1, 2 if the run cannot be made, 1 otherwise. Each
command has --help.
"""


def run_parser() -> argparse.ArgumentParser:
    """Return the parser of a new run."""
    parser = argparse.ArgumentParser("mlab-agent", usage=_USAGE, epilog=_STATUS, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"mlab-agent {__version__}")
    files = parser.add_argument_group("where the files are")
    files.add_argument("--workdir", metavar="DIR", help="a directory of this machine")
    files.add_argument("--task-file", metavar="FILE", help="the task's text; an ORS server has its own")
    files.add_argument("--submission", metavar="FILE", help="where the answer goes (default: DIR/submission.txt)")
    files.add_argument(
        "--read-only", action="append", default=[], metavar="PATTERN", help="files never written; repeat"
    )
    files.add_argument(
        "--read-only-files",
        metavar="FILE",
        help="has such patterns, one a line (default: read_only_files.txt beside the task file, or in DIR/scripts)",
    )
    files.add_argument(
        "--left-out", action="append", default=[], metavar="PATTERN", help="what no snapshot keeps; repeat"
    )
    files.add_argument(
        "--pass-variable",
        action="append",
        default=[],
        metavar="NAME",
        help="of the environment, for scripts in DIR, which get only common ones such as PATH, LANG, CUDA_*; repeat",
    )
    files.add_argument("--ors", metavar="URL", help="an Open Reward Standard server")
    files.add_argument("--task", metavar="ID", help="a task of the server")
    files.add_argument("--environment", default="rebench", metavar="NAME", help="of the server (default: %(default)s)")
    files.add_argument("--split", default="test", metavar="NAME", help="which the task is in (default: %(default)s)")
    files.add_argument("--token-variable", metavar="NAME", help="has the server's token")
    files.add_argument("--secret", action="append", default=[], metavar="NAME=VARIABLE", help="of the session; repeat")
    files.add_argument("--run", metavar="DIR", help="the run's own directory (default: a new one in mlab-runs)")
    files.add_argument("--check", action="store_true", help="check options, keys and prices, and start nothing")
    model = parser.add_argument_group("models")
    model.add_argument("--model", metavar="NAME", help="the model of the steps")
    model.add_argument("--max-output-tokens", type=int, default=8192, metavar="N", help="a reply's (default: 8192)")
    model.add_argument("--temperature", type=float, metavar="T", help="default: the server's")
    model.add_argument("--seed", type=int, metavar="N", help="sent with each call, for servers that know it")
    model.add_argument("--tools", choices=("auto", "native", "text"), default="auto", help="how actions are written")
    model.add_argument("--recent-steps", type=int, default=8, metavar="N", help="steps kept word for word (default: 8)")
    _add_models(parser)
    _add_access(parser, os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    _add_limits(parser)
    return parser


def resume_parser() -> argparse.ArgumentParser:
    """Return the parser of ``resume``."""
    text = (
        "Go on with a run that was killed or has ended. A run at an ORS server goes on in the same session if the "
        "server still has it, else in a new one with the files of the last snapshot; it says which."
    )
    parser = argparse.ArgumentParser("mlab-agent resume", description=text, allow_abbrev=False)
    parser.add_argument("run", metavar="RUN", help="the run's directory")
    parser.add_argument(
        "--from-step",
        type=int,
        metavar="N",
        help="go on from how things were after step N (0: before the first): files, memory, time and steps. What came "
        "after it stays in the trace, and what it cost counts. A server's attempts and hours are not undone",
    )
    parser.add_argument("--ors", metavar="URL", help="where the server is now, with the sessions that it had")
    _add_models(parser)
    _add_access(parser, None)
    _add_limits(parser)
    return parser


def demo_parser() -> argparse.ArgumentParser:
    """Return the parser of ``demo``."""
    text = "Work on a small task: with a stand-in for a model, or with --model NAME and its key."
    parser = argparse.ArgumentParser("mlab-agent demo", description=text, allow_abbrev=False)
    parser.add_argument("--into", default="mlab-demo", metavar="DIR", help="a new directory (default: %(default)s)")
    parser.add_argument("--model", metavar="NAME", help="a real model instead of the stand-in")
    _add_access(parser, os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    return parser


def _add_models(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the models' prices, sizes and servers")
    group.add_argument("--price", type=_price, metavar="IN,OUT", help="the model's dollars a million tokens")
    group.add_argument("--context-tokens", type=int, metavar="N", help="how much it reads and writes together")
    for role, use in _ROLES.items():
        group.add_argument(f"--{role}-model", metavar="NAME", help=f"another model for {use}")
        group.add_argument(f"--{role}-price", type=_price, metavar="IN,OUT", help="as --price")
        group.add_argument(f"--{role}-context-tokens", type=int, metavar="N", help="as --context-tokens")
        group.add_argument(f"--{role}-max-output-tokens", type=int, metavar="N", help="as --max-output-tokens")
        group.add_argument(f"--{role}-base-url", metavar="URL", help="its server, if it is another one")
        group.add_argument(f"--{role}-key-variable", metavar="NAME", help="has the key of that server")


def _add_access(parser: argparse.ArgumentParser, base_url: str | None) -> None:
    group = parser.add_argument_group("the models' server")
    group.add_argument("--base-url", default=base_url, metavar="URL", help="default: OPENAI_BASE_URL, else OpenAI's")
    group.add_argument("--key-variable", metavar="NAME", help=f"has the key (default: {KEY_VARIABLE})")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits and scripts")
    group.add_argument("--max-steps", type=int, metavar="N", help="default: 50")
    group.add_argument(
        "--max-time",
        dest="max_seconds",
        type=_seconds,
        metavar="T",
        help="of working time, such as 90m (default: 5h): waiting for a server that refuses or does not answer is "
        "left out",
    )
    group.add_argument("--max-cost", dest="max_dollars", type=float, metavar="DOLLARS", help="default: no cap")
    group.add_argument("--max-tokens", type=int, metavar="N", help="of all calls together (default: no cap)")
    group.add_argument(
        "--script-time", dest="script_seconds", type=_seconds, metavar="T", help="a script's (default: 1h)"
    )
    group.add_argument("--python", metavar="PROGRAM", help="runs Python scripts (default: python of the workspace)")
    group.add_argument("--no-live-output", action="store_true", help="do not show what scripts write while they run")
    group.add_argument(
        "--repeat-remark",
        type=int,
        metavar="N",
        help="tell the model when it did the same N times in a row; 0 for never (default: 3)",
    )
    group.add_argument(
        "--server-wait",
        dest="server_wait_seconds",
        type=_seconds,
        metavar="T",
        help="how long to wait for an ORS server that does not answer (default: 10m)",
    )


def new_settings(options: argparse.Namespace) -> RunSettings:
    """Return the settings of a new run.

    Raises:
        SettingsError: if the list of read-only files cannot be read.
    """
    settings = RunSettings(
        workdir=options.workdir and str(Path(options.workdir).resolve()),
        submission=options.submission and str(Path(options.submission).resolve()),
        read_only=(*options.read_only, *_listed_patterns(options)),
        left_out=tuple(options.left_out),
        pass_variables=tuple(options.pass_variable),
        ors=options.ors,
        task=options.task,
        environment=options.environment,
        split=options.split,
        token_variable=options.token_variable,
        secrets=dict(option.partition("=")[::2] for option in options.secret),
        model=ModelOptions(
            name=options.model, max_output_tokens=options.max_output_tokens, temperature=options.temperature
        ),
        seed=options.seed,
        tools=options.tools,
        recent_steps=options.recent_steps,
        base_url=options.base_url,
    )
    return changed_settings(settings, options)


def changed_settings(settings: RunSettings, options: argparse.Namespace) -> RunSettings:
    """Return settings with the models, limits and servers of the command line."""
    changed = {name: getattr(options, name) for name in _CHANGEABLE_SETTINGS if getattr(options, name) is not None}
    if changed.get("base_url", settings.base_url) != settings.base_url:  # a key is for one server
        changed["key_variable"] = options.key_variable
    if settings.workdir is not None and options.python is not None:  # the directory may be another one later
        changed["python"] = str(Path(shutil.which(options.python) or options.python).absolute())
    own = {"price": options.price, "context_tokens": options.context_tokens}
    main = settings.model.model_copy(update={name: value for name, value in own.items() if value is not None})
    models = {"model": main}
    for role in _ROLES:
        if (model := _model_of_role(role, main, settings, options)) is not None:
            models[f"{role}_model"] = model
    return RunSettings.model_validate({**settings.model_dump(), **changed, **models})


def _model_of_role(
    role: str, main: ModelOptions, settings: RunSettings, options: argparse.Namespace
) -> ModelOptions | None:
    """Return the options of the fast or edit model; None if the run has none of its own."""
    before: ModelOptions | None = getattr(settings, f"{role}_model")
    values = {name: getattr(options, f"{role}_{name}") for name in (*_MODEL_OPTIONS, "max_output_tokens")}
    changed = {name: value for name, value in values.items() if value is not None}
    name = getattr(options, f"{role}_model")
    if name is not None:  # with nothing of the model that it replaces but the length of replies
        return main.model_copy(update={**dict.fromkeys(_MODEL_OPTIONS), "name": name, **changed})
    if before is None and changed:
        raise SettingsError(f"--{role}-{next(iter(changed)).replace('_', '-')} needs --{role}-model NAME")
    if before is None:
        return None
    url = changed.get("base_url") or before.base_url or options.base_url or settings.base_url
    if url != (before.base_url or settings.base_url):  # a key is for one server
        changed.setdefault("key_variable", None)
    return before.model_copy(update=changed)


def _listed_patterns(options: argparse.Namespace) -> tuple[str, ...]:
    file = options.read_only_files and Path(options.read_only_files)
    if not file:
        file = list_of_task(
            Path(options.task_file) if options.task_file else None, Path(options.workdir) if options.workdir else None
        )
    if not file:
        return ()
    try:
        return read_patterns(file)
    except OSError as error:
        raise SettingsError(f"the list of read-only files {file} cannot be read: {error.strerror}") from None


def _seconds(text: str) -> float:
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 5h, 90m, 30s or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION.findall(text))


def _price(text: str) -> tuple[float, float]:
    parts = text.split(",")
    try:
        prompt, completion = map(float, parts)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no price: write the dollars a million prompt tokens, a comma, those of completion tokens"
        ) from None
    return prompt, completion
