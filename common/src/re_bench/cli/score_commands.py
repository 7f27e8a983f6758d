"""The commands about submissions: ``score`` and ``regrade``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.cli.command import Command, add_cluster, add_json, add_sandbox, add_task, print_json
from re_bench.cli.parser import add_old_name
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse


def _score_options(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    parser.add_argument("directory", metavar="DIR", type=Path, help="the submission's directory")
    parser.add_argument("--log", metavar="FILE", type=Path, help="append the attempts to this log")
    add_profile_option(parser)
    add_model_options(parser)
    add_sandbox(parser)
    add_json(parser)


def _regrade_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", type=Path, help="an attempt log; it is not changed")
    text = "append the attempts to this log"
    add_old_name(parser, "--into", parser.add_argument("--log", dest="into", metavar="FILE", type=Path, help=text))
    add_cluster(parser)
    add_sandbox(parser)
    add_json(parser)


def _score(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from re_bench.runs.score_process import score_and_record, score_submission
    from re_bench.scoring.score import EXIT_STATUS, describe
    from re_bench.tables import number
    from re_bench.task.choices import choose_model, profile_name
    from re_bench.task.discovery import find_task

    task = find_task(options.task)
    task = choose_model(task, profile_name(task, options.profile), ChatModel.from_options(options))
    request = (task, options.directory, options.profile, options.sandbox)
    score, final = score_and_record(*request, options.log) if options.log else (score_submission(*request), None)
    if options.json:
        print_json(score.to_dict() | ({"final": asdict(final)} if final else {}))
    else:
        print(describe(task, score))
        if final:
            print(f"attempt {final.attempt}, final so far: raw {number(final.raw)}, reward {number(final.reward)}")
    return EXIT_STATUS[score.status]


def _regrade(options: argparse.Namespace) -> int:
    from re_bench.cli.run_tables import regraded_table
    from re_bench.errors import UsageError
    from re_bench.runs.regrade import regrade

    if not options.log.is_file():
        raise UsageError(f"{options.log}: there is no attempt log")
    regraded = regrade(
        options.log, into=options.into, sandbox=options.sandbox, gpu_type=options.gpu_type, cluster=options.ray
    )
    if options.json:
        print_json({"regraded": [entry.to_dict() for entry in regraded]})
    else:
        print(regraded_table(regraded))
    return 0 if all(entry.score is not None and entry.score.status != "error" for entry in regraded) else 1


COMMANDS = (
    Command(
        "score",
        "score a submission",
        _score_options,
        _score,
        group="task authors",
        examples=(
            "re-bench score triton_cumsum /tmp/work",
            "re-bench score triton_cumsum /tmp/work --log attempts.jsonl",
        ),
    ),
    Command(
        "regrade",
        "score the stored submissions of a log again",
        _regrade_options,
        _regrade,
        group="benchmark maintainers",
        examples=("re-bench regrade attempts.jsonl --log again.jsonl",),
    ),
)
