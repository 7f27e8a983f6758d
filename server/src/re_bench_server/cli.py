"""The command ``re-bench serve``. The server itself is imported when it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from re_bench.cli.main import EVALUATORS, app
from re_bench.errors import UsageError
from re_bench.options import AboveZero, Flag, Hours, MaxAttempts, Port, Positive, ProfileName, SandboxName, ScoringGpu
from re_bench.task.chat_model import NO_MODEL, ModelOptions

if TYPE_CHECKING:
    from re_bench_server.settings import Settings

_BASH_REWARDS = {"0": 0.0, "none": None}

State = Annotated[
    Path | None,
    Parameter(name="--state", help="The directory for sessions and their attempt logs (default: the user's own)."),
]


@Parameter(name="*", group=Group("Address", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class AddressOptions:
    """Where the server listens, and to whom."""

    host: Annotated[str, Parameter(help="The address to listen on.")] = "127.0.0.1"
    port: Port = 8080
    token_file: Annotated[Path | None, Parameter(help="A file with a token that clients must send as API key.")] = None
    insecure: Annotated[Flag, Parameter(help="Serve on a public --host without a token.")] = False


@Parameter(name="*", group=Group("Limits", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """What sessions may use; None is the server's default."""

    max_sessions: Annotated[Positive | None, Parameter(help="Sessions at a time (default: 64).")] = None
    scorings: Annotated[Positive | None, Parameter(name="--jobs", help="How many at a time.")] = None
    scoring_gpu: ScoringGpu = None
    max_attempts: MaxAttempts = None
    hours: Hours = None
    wait_hours: Annotated[AboveZero | None, Parameter(help="More of them, for waits; agents are not told.")] = None
    memory_mib: Annotated[Positive | None, Parameter(help="Memory (default: 8192, or what the task needs).")] = None
    disk_mib: Annotated[
        Positive | None, Parameter(help="Of the workspace, and of kept submissions (default: 16384).")
    ] = None
    model_dollars: Annotated[
        AboveZero | None, Parameter(help="For a session's own calls to its task's model (default: 10).")
    ] = None


@Parameter(name="*", group=Group("End and restart", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class RestartOptions:
    """How long the server waits; None is its default."""

    drain_s: Annotated[
        AboveZero | None,
        Parameter(name="--drain", help="Seconds that commands may run on after SIGTERM (default: 600)."),
    ] = None
    reclaim_s: Annotated[
        AboveZero | None,
        Parameter(name="--reclaim", help="Seconds to wait for clients after a restart (default: 900)."),
    ] = None


@Parameter(name="*", group=Group("Network of the sessions' sandboxes; scorings never have one", sort_key=4))
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """The network that agents have."""

    network: Annotated[Literal["none", "proxy", "open"], Parameter(help="open: this machine's own.")] = "none"
    allow: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="Hosts that the proxy reaches: example.org, *.example.org (below it), .example.org (both), "
            "each with :PORT or for ports 80 and 443; @packages: the usual package indexes; '*': all public hosts.",
        ),
    ] = ()
    network_mib: Annotated[Positive | None, Parameter(help="Traffic of a session (default: 10240).")] = None


@Parameter(name="*", group=Group("Records of sessions, in the state directory", sort_key=5))
@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What is kept of sessions."""

    no_transcripts: Annotated[Flag, Parameter(help="Keep no commands and outputs.")] = False
    transcript_mib: Annotated[Positive | None, Parameter(help="Of each session (default: 64).")] = None
    keep_days: Annotated[AboveZero | None, Parameter(help="Remove sessions that ended this many days ago.")] = None


@app.command(group=EVALUATORS)
def serve(
    *,
    task: Annotated[
        tuple[str, ...], Parameter(negative=(), help="Serve this one; may be repeated (default: all).")
    ] = (),
    prepare: Annotated[Flag, Parameter(help="Listen only when all tasks are prepared.")] = False,
    link_data: Annotated[
        Flag, Parameter(help="Sessions share large files that agents need not change, by hard links.")
    ] = False,
    withhold_rewards: Annotated[
        Flag, Parameter(help="Give no reward before the end for tasks that hide their score.")
    ] = False,
    bash_reward: Annotated[
        Literal["0", "none"],
        Parameter(help="Of calls that score nothing; none is for trainers that take an episode's last reward."),
    ] = "0",
    profile: ProfileName = "auto",
    sandbox: SandboxName = None,
    state: State = None,
    address: AddressOptions = AddressOptions(),
    restart: RestartOptions = RestartOptions(),
    limits: LimitOptions = LimitOptions(),
    network: NetworkOptions = NetworkOptions(),
    records: RecordOptions = RecordOptions(),
    model: ModelOptions = NO_MODEL,
) -> int:
    """Serve the tasks to agents over the Open Reward Standard."""
    from re_bench_server.network.policy import NetworkPolicy  # noqa: PLC0415 - takes a moment
    from re_bench_server.settings import Settings, check_address, default_state, read_token  # noqa: PLC0415

    given: dict[str, Any] = asdict(limits) | asdict(restart)
    given |= {"transcript_mib": records.transcript_mib, "keep_days": records.keep_days}
    settings = Settings(
        state=state or default_state(),
        host=address.host,
        port=address.port,
        token=read_token(address.token_file) if address.token_file else None,
        profile=profile,
        chat_model=model.chosen(),
        tasks=task,
        prepare_first=prepare,
        link_data=link_data,
        sandbox=sandbox,
        withhold_rewards=withhold_rewards,
        bash_reward=_BASH_REWARDS[bash_reward],
        network=NetworkPolicy.from_options(network.network, list(network.allow), network.network_mib),
        transcripts=not records.no_transcripts,
        **{name: value for name, value in given.items() if value is not None},
    )
    check_address(settings, insecure=address.insecure)
    _run(settings, insecure=address.insecure)
    return 0


def _run(settings: Settings, *, insecure: bool) -> None:
    try:
        from re_bench_server.server import serve as run  # noqa: PLC0415 - takes seconds
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs the package {error.name}; run: pip install -c constraints.txt -e common -e 'server[ors]'"
        ) from None
    run(settings, insecure=insecure)
