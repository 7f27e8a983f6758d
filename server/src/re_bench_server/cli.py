"""The subcommand ``re-bench serve``. The server itself is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli.command import (
    Command,
    above_zero,
    add_hours,
    add_jobs,
    add_max_attempts,
    add_port,
    add_sandbox,
    positive,
)
from re_bench.cli.parser import add_old_name
from re_bench.errors import UsageError
from re_bench.gpu.devices import add_scoring_gpu
from re_bench.task.chat_model import ChatModel, add_model_options
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    import argparse

    from re_bench_server.settings import Settings

_BASH_REWARDS = {"0": 0.0, "none": None}
_NETWORKS = ("none", "proxy", "open")


def add_state(parser: argparse._ActionsContainer) -> None:
    """Add ``--state``."""
    text = "the server's directory for sessions and their attempt logs (default: the user's own for state)"
    parser.add_argument("--state", type=Path, metavar="DIR", help=text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``re-bench serve``."""
    address = parser.add_argument_group("address and state")
    address.add_argument(
        "--host", metavar="HOST", default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    add_port(address, default=8080)
    address.add_argument("--token-file", type=Path, metavar="FILE", help="a token that clients must send as API key")
    address.add_argument("--insecure", action="store_true", help="serve on a public --host without a token")
    add_state(address)
    restart = parser.add_argument_group("end and restart")
    restart.add_argument(
        "--drain", type=above_zero, metavar="S", help="seconds that commands may run on after SIGTERM (default: 600)"
    )
    restart.add_argument(
        "--reclaim", type=above_zero, metavar="S", help="seconds to wait for clients after a restart (default: 900)"
    )
    tasks = parser.add_argument_group("tasks")
    tasks.add_argument("--task", action="append", metavar="NAME", help="serve this one; may be repeated (default: all)")
    tasks.add_argument("--prepare", action="store_true", help="listen only when all tasks are prepared")
    tasks.add_argument(
        "--link-data", action="store_true", help="sessions share large files that agents need not change, by hard links"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-sessions", type=positive, metavar="N", help="sessions at a time (default: 64)")
    add_old_name(limits, "--scorings", add_jobs(limits, "as many scorings as half the cores"))
    add_scoring_gpu(limits, "the last of several")
    add_max_attempts(limits)
    add_hours(limits)
    limits.add_argument(
        "--wait-hours", type=above_zero, metavar="H", help="more of them, not told to agents, for what they wait for"
    )
    limits.add_argument(
        "--memory-mib", type=positive, metavar="N", help="memory (default: 8192, or what the task needs)"
    )
    limits.add_argument(
        "--disk-mib", type=positive, metavar="N", help="of the workspace, and of kept copies (default: 16384)"
    )
    limits.add_argument(
        "--model-dollars",
        type=above_zero,
        metavar="D",
        help="for a session's own calls to its task's model (default: 10)",
    )
    limits.add_argument(
        "--withhold-rewards", action="store_true", help="no reward before the end from tasks that hide their score"
    )
    limits.add_argument(
        "--bash-reward",
        choices=_BASH_REWARDS,
        default="0",
        help="of calls that score nothing; 'none' is for trainers that take an episode's last reward (default: 0)",
    )
    network = parser.add_argument_group("network of the sessions' sandboxes; scorings never have one")
    network.add_argument(
        "--network", choices=_NETWORKS, default="none", help="'open' is this machine's own (default: %(default)s)"
    )
    network.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="HOST[,HOST...]",
        help="what the proxy reaches: example.org, *.example.org (below it), .example.org (both), each with :PORT or "
        "for ports 80 and 443; @packages for the usual package indexes; '*' for all public hosts",
    )
    network.add_argument("--network-mib", type=positive, metavar="N", help="traffic of a session (default: 10240)")
    records = parser.add_argument_group("records of sessions, in the state directory")
    records.add_argument("--no-transcripts", action="store_true", help="keep no commands and outputs")
    records.add_argument("--transcript-mib", type=positive, metavar="N", help="of each session (default: 64)")
    records.add_argument("--keep-days", type=above_zero, metavar="D", help="remove sessions that ended D days ago")
    add_profile_option(parser)
    add_model_options(parser)
    add_sandbox(parser)


def serve(options: argparse.Namespace) -> int:
    """Run a server.

    Raises:
        UsageError: if it cannot run here.
    """
    from re_bench_server.settings import check_address, default_state, read_token  # noqa: PLC0415 - takes a moment

    token = read_token(options.token_file) if options.token_file else None
    settings = _settings(options, options.state or default_state(), token)
    check_address(settings, insecure=options.insecure)
    try:
        from re_bench_server.server import serve as run  # noqa: PLC0415 - takes seconds
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs the package {error.name}; run: pip install -c constraints.txt -e common -e server"
        ) from None
    run(settings, insecure=options.insecure)
    return 0


def _settings(options: argparse.Namespace, state: Path, token: str | None) -> Settings:
    from re_bench_server.network.policy import NetworkPolicy  # noqa: PLC0415 - takes a moment
    from re_bench_server.settings import Settings  # noqa: PLC0415

    names = ["max_sessions", "max_attempts", "hours", "wait_hours", "memory_mib", "disk_mib"]
    names += ["model_dollars", "transcript_mib", "keep_days", "scoring_gpu"]
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    chosen |= {"scorings": options.jobs, "drain_s": options.drain, "reclaim_s": options.reclaim}
    return Settings(
        state=state,
        host=options.host,
        port=options.port,
        token=token,
        profile=options.profile,
        chat_model=ChatModel.from_options(options),
        tasks=tuple(options.task or ()),
        prepare_first=options.prepare,
        link_data=options.link_data,
        sandbox=options.sandbox,
        withhold_rewards=options.withhold_rewards,
        bash_reward=_BASH_REWARDS[options.bash_reward],
        network=NetworkPolicy.from_options(options.network, options.allow, options.network_mib),
        transcripts=not options.no_transcripts,
        **{name: value for name, value in chosen.items() if value is not None},
    )


COMMAND = Command(
    "serve",
    "serve the tasks to agents over the Open Reward Standard",
    add_options,
    serve,
    examples=("re-bench serve", "re-bench serve --task triton_cumsum --port 8080 --max-attempts 20"),
)
