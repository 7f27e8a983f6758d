"""The meter: makes experiments for a sandbox that cannot be trusted to count them.

``python -m small_scaling_law.meter --profile P --socket PATH --state DIR`` listens on a Unix socket, which is shown to
the sandbox as ``RE_BENCH_EXPERIMENTS``. A connection is one run: it sends a line of JSON, ``[n_embd, max_iters,
seed]``, and gets a line back, the outcome or ``{"refused": "the reason"}``. Ledger, text and code lie in ``DIR``, a
workspace that no sandbox sees; there each run is made by the same ``train.py``, as many at a time as ``--workers``.
What is asked while others run waits. A meter that is started again with the same ``DIR`` goes on with its ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socketserver
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.instances import chosen_instance
from re_bench.errors import UsageError
from re_bench.processes import StoppedError, cli_entry_point, print_progress, request_stop, run_program
from re_bench.task.interface import Setup
from small_scaling_law.profiles import SCALES
from small_scaling_law.workspace import TASK, create, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from small_scaling_law.profiles import Scale

_TASK = next(directory for directory in Path(__file__).parents if (directory / "task.toml").is_file())
"""The task's folder; in a wheel the package is in it, else it is in the folder."""
_LONGEST_REQUEST = 200
_WAIT_FOR_REQUEST_S = 10.0
_RUN = """
import json, sys
from train import RefusedError, make
try:
    print(json.dumps(make(*json.loads(sys.argv[1]))))
except RefusedError as error:
    print(json.dumps({"refused": str(error)}))
"""


class Meter(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A server of experiments; :meth:`serve_forever` runs it."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, socket: Path, state: Path, workers: int) -> None:
        """Listen on ``socket`` for runs to be made in the workspace ``state``."""
        self.state = state
        self.turns = threading.BoundedSemaphore(workers)
        super().__init__(str(socket), _Request)
        socket.chmod(0o666)  # the sandbox may be another user, and sees what it is shown


class _Request(socketserver.StreamRequestHandler):
    """One run."""

    timeout = _WAIT_FOR_REQUEST_S
    server: Meter

    def handle(self) -> None:
        try:
            answer = self._answer()
        except TimeoutError:
            answer = {"refused": "no request came"}
        except StoppedError:
            answer = {"refused": "the meter was stopped"}
        self.connection.settimeout(_WAIT_FOR_REQUEST_S)
        try:
            self.wfile.write(json.dumps(answer).encode() + b"\n")
        except OSError:
            return  # nobody waits any more; the run has been paid for

    def _answer(self) -> object:
        line = self.rfile.readline(_LONGEST_REQUEST)
        try:
            n_embd, max_iters, seed = map(_integer, json.loads(line))
        except (ValueError, TypeError, RecursionError):
            return {"refused": "a request is a line of JSON: [n_embd, max_iters, seed], all integers"}
        with self.server.turns:
            status, written = run_program(
                ["-c", _RUN, json.dumps([n_embd, max_iters, seed])], capture=True, directory=self.server.state
            )
        return json.loads(written) if status == 0 else {"refused": f"the run failed with exit status {status}"}


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def create_workspace(setup: Setup[Scale], state: Path) -> None:
    """Create the trusted workspace, which has the ledger, unless it is there."""
    if not (state / "profile.json").exists():
        shutil.copytree(_TASK / "starter", state, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        create(setup, state)


def serve(meter: Meter) -> None:
    """Serve until we are stopped; then the runs that are being made end too."""
    try:
        meter.serve_forever()
    finally:
        with request_stop():
            meter.server_close()
        Path(str(meter.server_address)).unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="Make and count experiments for a sandbox.")
    parser.add_argument("--profile", required=True)
    parser.add_argument("--socket", metavar="PATH", type=Path, required=True, help="where to listen")
    parser.add_argument("--state", metavar="DIR", type=Path, required=True, help="the trusted workspace and ledger")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models are small: one thread a run
    with cli_entry_point("meter.py"):
        number = chosen_instance(TASK, options.profile)
        setup = Setup(options.profile, SCALES[options.profile], number, print_progress)
        prepare(setup)
        create_workspace(setup, options.state)
        try:
            meter = Meter(options.socket, options.state.resolve(), options.workers)
        except OSError as error:
            raise UsageError(
                f"{options.socket}: {error.strerror}; give a path that does not exist, in a directory that does"
            ) from None
        print_progress(f"listening on {options.socket}")
        serve(meter)


if __name__ == "__main__":
    main()
