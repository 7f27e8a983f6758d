"""The settings of a server that the command line gives as they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from re_bench.options import (  # noqa: TC001 - cyclopts reads them
    AboveZero,
    Flag,
    Port,
    Positive,
    ProfileName,
    SandboxName,
    ScoringGpu,
)

_YEAR_H = 366 * 24
_SCORINGS = max(1, (os.cpu_count() or 2) // 2)

ADDRESS = Group("Address", sort_key=1)
RECORDS = Group("Records of sessions, in the state directory", sort_key=5)
_restart = partial(Parameter, group=Group("End and restart", sort_key=2))
_limit = partial(Parameter, group=Group("Limits", sort_key=3))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Settings of a server, with their defaults."""

    tasks: Annotated[
        tuple[str, ...],
        Parameter(name="--task", negative=(), help="Serve this one, by name or id; may be repeated (default: all)."),
    ] = ()
    prepare_first: Annotated[Flag, Parameter(name="--prepare", help="Listen only when all tasks are prepared.")] = False
    link_data: Annotated[
        Flag, Parameter(help="Sessions share large files that agents need not change, by hard links.")
    ] = False
    withhold_rewards: Annotated[
        Flag, Parameter(help="Give no reward before the end for tasks that hide their score.")
    ] = False
    profile: ProfileName = "auto"
    sandbox: SandboxName = None

    host: Annotated[str, Parameter(group=ADDRESS, help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[Port, Parameter(group=ADDRESS)] = 8080

    drain_s: Annotated[AboveZero, _restart(name="--drain", help="Seconds that calls may run on after SIGTERM.")] = 600.0
    reclaim_s: Annotated[
        AboveZero, _restart(name="--reclaim", help="Seconds after which a session whose client stays away is closed.")
    ] = 900.0

    max_sessions: Annotated[Positive, _limit(help="Sessions at a time.")] = 64
    scorings: Annotated[
        Positive, _limit(name="--jobs", show_default=False, help="Scorings at a time (default: half of the cores).")
    ] = _SCORINGS
    scoring_gpu: Annotated[ScoringGpu, _limit()] = None
    max_attempts: Annotated[Positive, _limit(help="How often a submission is scored; internal errors count not.")] = 100
    hours: Annotated[AboveZero, _limit(show_default=False, help="Hours to work in (default: 8).")] = 8.0
    wait_hours: Annotated[
        float, _limit(validator=Number(gte=0, lte=_YEAR_H), help="More of them, for waits; agents are not told.")
    ] = 0.0
    memory_mib: Annotated[Positive, _limit(help="Memory of a session; a task that needs more has more.")] = 8192
    disk_mib: Annotated[Positive, _limit(help="Growth of a workspace, and size of kept submissions.")] = 16384
    model_dollars: Annotated[AboveZero, _limit(help="For a session's own calls to its task's model.")] = 10.0

    transcript_mib: Annotated[Positive, Parameter(group=RECORDS, help="The most of a session's transcript.")] = 64


NO_OPTIONS = ServeOptions()
