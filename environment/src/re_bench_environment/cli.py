"""The subcommand ``re-bench serve``: its options, and how they become settings.

The server itself is imported when it is run.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli.command import Command, add_json, add_profile, add_sandbox, positive
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from re_bench_environment.settings import Settings

__all__ = ["COMMAND", "add_options", "serve"]

_ANSWER_S = 10.0
_CLEAR = "\x1b[H\x1b[2J"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what ``re-bench serve`` understands."""
    where = parser.add_argument_group("where")
    where.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    where.add_argument("--port", type=int, default=8080, help="0 chooses one (default: %(default)s)")
    where.add_argument("--token-file", type=Path, metavar="FILE", help="a token that clients must send as API key")
    where.add_argument("--insecure", action="store_true", help="let everybody call who can reach another --host")
    where.add_argument("--state", type=Path, metavar="DIR", help="where sessions and their attempt logs lie")
    what = parser.add_argument_group("what a session may use")
    what.add_argument("--max-sessions", type=positive, metavar="N", help="sessions at a time (default: 64)")
    what.add_argument("--scorings", type=positive, metavar="N", help="scorings at a time (default: half the cores)")
    what.add_argument("--hours", type=_above_zero, metavar="H", help="hours to run commands in (default: 8)")
    what.add_argument("--memory-mib", type=positive, metavar="N", help="memory (default: 8192, or what the task needs)")
    what.add_argument(
        "--disk-mib", type=positive, metavar="N", help="of the workspace, and of kept copies (default: 16384)"
    )
    what.add_argument(
        "--model-dollars", type=_above_zero, metavar="D", help="for own calls to a task's model (default: 10)"
    )
    what.add_argument(
        "--withhold-rewards", action="store_true", help="no reward before the end from tasks that hide their score"
    )
    looking = parser.add_argument_group("inspect a running server")
    looking.add_argument("--status", action="store_true", help="say what the server at --host and --port does")
    looking.add_argument("--watch", action="store_true", help="say it again every second, until interrupted")
    add_profile(parser)
    add_sandbox(parser)
    add_json(parser)


def serve(options: argparse.Namespace) -> int:
    """Do what ``re-bench serve`` was asked for.

    Raises:
        UsageError: if that cannot be done here.
        ReBenchError: if a server that was asked for its status does not answer.
    """
    from re_bench_environment.settings import default_state, read_token  # noqa: PLC0415 - takes a moment

    token = read_token(options.token_file) if options.token_file else None
    if options.status or options.watch:
        return _status(options, token)
    settings = _settings(options, options.state or default_state(), token)
    try:
        from re_bench_environment.server import serve as run  # noqa: PLC0415 - takes seconds
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs the package {error.name}; run: pip install -c constraints.txt -e environment"
        ) from None
    run(settings, insecure=options.insecure)
    return 0


def _settings(options: argparse.Namespace, state: Path, token: str | None) -> Settings:
    from re_bench_environment.settings import Settings  # noqa: PLC0415 - takes a moment

    names = ("max_sessions", "scorings", "hours", "memory_mib", "disk_mib", "model_dollars")
    given: dict[str, Any] = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return Settings(
        state=state,
        host=options.host,
        port=options.port,
        token=token,
        profile=options.profile,
        sandbox=options.sandbox,
        withhold_rewards=options.withhold_rewards,
        **given,
    )


def _status(options: argparse.Namespace, token: str | None) -> int:
    from re_bench_environment.health import health_in_words  # noqa: PLC0415 - takes a moment

    said = _health(options.host, options.port, token)
    while options.watch:
        print(f"{_CLEAR}{health_in_words(said)}", flush=True)
        time.sleep(1)
        said = _health(options.host, options.port, token)
    print(json.dumps(said) if options.json else health_in_words(said))
    return 0


def _health(host: str, port: int, token: str | None) -> dict[str, Any]:
    import http.client  # noqa: PLC0415 - slow to import, for every other command too
    import urllib.error  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    address = f"http://[{host}]:{port}/health" if ":" in host else f"http://{host}:{port}/health"
    request = urllib.request.Request(address, headers={"X-API-Key": token} if token else {})  # noqa: S310 - http
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy is to see the token
    try:
        with direct.open(request, timeout=_ANSWER_S) as answer:
            said: dict[str, Any] = json.load(answer)
            return said
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ReBenchError(f"{address}: no server answers ({why})") from None


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return value


COMMAND = Command("serve", "serve the tasks to agents over the Open Reward Standard", add_options, serve)
