"""The subcommand ``re-bench sessions``: what sessions of a server have done, and the end of one.

``list`` and ``show`` read the state directory alone, so that they work with a running server and without.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from re_bench.cli.command import Command, add_json, positive
from re_bench_server.cli import add_state

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from re_bench_server.records.session_files import SessionFiles


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``re-bench sessions``."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, action, text in (
        ("list", _list, "list the sessions of a server, open and ended"),
        ("show", _show, "show a session's attempts and last commands"),
        ("end", _end, "end a session with the final score of its attempts"),
    ):
        chosen = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        chosen.set_defaults(action=action)
        if name != "list":
            chosen.add_argument("session", metavar="ID", help="a session's name, or its beginning")
        if name == "show":
            chosen.add_argument(
                "--last", type=positive, default=10, metavar="N", help="show N calls (default: %(default)s)"
            )
            chosen.add_argument("--full", action="store_true", help="show all calls, with whole commands and outputs")
        add_state(chosen)
        add_json(chosen)


def sessions(options: argparse.Namespace) -> int:
    """List, show or end sessions.

    Raises:
        UsageError: if there is no such session.
        ReBenchError: if the server does not do what it is asked.
    """
    from re_bench_server.settings import default_state  # noqa: PLC0415 - takes a moment

    options.state = options.state or default_state()
    status: int = options.action(options)
    return status


def _list(options: argparse.Namespace) -> int:
    from dataclasses import asdict  # noqa: PLC0415 - takes a moment

    from re_bench_server.records.session_files import all_sessions  # noqa: PLC0415
    from re_bench_server.records.session_tables import session_table  # noqa: PLC0415

    served = _is_served(options.state)
    summaries = [one.summary(served=served) for one in all_sessions(options.state)]
    if options.json:
        print(json.dumps({"sessions": [asdict(summary) for summary in summaries]}))
    else:
        print(session_table(summaries) if summaries else "no sessions")
    return 0


def _show(options: argparse.Namespace) -> int:
    from dataclasses import asdict  # noqa: PLC0415 - takes a moment

    from re_bench_server.records.session_files import session_called  # noqa: PLC0415
    from re_bench_server.records.session_tables import describe_session  # noqa: PLC0415

    session = session_called(options.state, options.session)
    summary, attempts = session.summary(served=_is_served(options.state)), session.attempts()
    calls = session.calls(None if options.full else options.last)
    if options.json:
        told: dict[str, Any] = {"session": asdict(summary), "attempts": [asdict(attempt) for attempt in attempts]}
        print(json.dumps(told | {"calls": calls}, default=str))
    else:
        print(describe_session(summary, attempts, calls, full=options.full))
    return 0


def _end(options: argparse.Namespace) -> int:
    from re_bench_server.operator_socket import ask  # noqa: PLC0415
    from re_bench_server.records.ending import end_without_server  # noqa: PLC0415 - takes a moment
    from re_bench_server.records.session_files import session_called  # noqa: PLC0415

    session: SessionFiles = session_called(options.state, options.session)
    if ask(options.state, {"do": "end", "session": session.name}) is None:
        end_without_server(options.state, session)
    final = session.record().get("final") or {}
    if options.json:
        print(json.dumps({"session": session.name, "final": final or None}))
    elif final.get("raw") is None:
        print(f"{session.name}: ended; none of its {final.get('attempts', 0)} attempts was valid")
    else:
        reward = "no reward" if final["reward"] is None else f"reward {final['reward']:z.4f}"
        print(f"{session.name}: ended with raw score {final['raw']:z.6g}, {reward}, of {final['attempts']} attempts")
    return 0


def _is_served(state: Path) -> bool:
    from re_bench_server.operator_socket import is_served  # noqa: PLC0415 - takes a moment

    return is_served(state)


COMMAND = Command(
    "sessions",
    "list, show or end sessions of a server",
    add_options,
    sessions,
    examples=("re-bench sessions list", "re-bench sessions show 3f2a --last 5"),
)
