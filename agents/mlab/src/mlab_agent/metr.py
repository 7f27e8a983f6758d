"""The agent in a container of METR; :class:`~mlab_agent.agent.Agent` has the functions of METR's agents.

In a container of METR's workbench the task is in ``/home/agent/instructions.txt``, and the answer belongs in
``/home/agent/submission.txt``; ``main.sh`` runs this module there.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from mlab_agent.__main__ import hide_environment

_HOME = Path("/home/agent")
_NO_ANSWER = "The agent ended before it gave an answer."


def main(arguments: list[str]) -> int:
    """Run the agent in a container with arguments of ``mlab-agent``, or resume a run that was killed, unchanged."""
    home = Path(os.environ.get("MLAB_AGENT_HOME", _HOME))
    run_directory = Path(os.environ.get("MLAB_AGENT_RUN_DIRECTORY", "/var/tmp/mlab-agent"))  # noqa: S108 - chosen by the user
    submission = home / "submission.txt"
    write_first_submission(submission)  # whatever happens from here on, there is one
    from mlab_agent.cli import main as command  # noqa: PLC0415 - the submission comes first
    from mlab_agent.trace import TRACE_FILE, has_begun  # noqa: PLC0415 - as above

    _remove_from_python_path()
    if has_begun(run_directory / TRACE_FILE):
        status = command(["resume", str(run_directory)])
    else:
        paths = ["--workdir", str(home), "--task-file", str(home / "instructions.txt"), "--submission", str(submission)]
        options = ["--run", str(run_directory), "--left-out", "scaffolding"]
        status = command([*paths, *options, *arguments])
    if (run_directory / TRACE_FILE).exists():
        _export(run_directory / TRACE_FILE, home)
    return status


def write_first_submission(submission: Path) -> None:
    """Write a submission that says that there is no answer, unless there is anything at its place."""
    with contextlib.suppress(FileExistsError), submission.open("x", encoding="utf-8") as file:
        file.write(_NO_ANSWER)


def _export(trace: Path, home: Path) -> None:
    """Copy the trace to where METR's ``export`` finds it."""
    from mlab_agent.workspaces.files import AGENT_DIRECTORY, WorkspaceError  # noqa: PLC0415 - as in main
    from mlab_agent.workspaces.local import LocalFiles  # noqa: PLC0415 - as above

    try:
        LocalFiles(os.path.realpath(home)).write(f"{AGENT_DIRECTORY}/{trace.name}", trace.read_bytes())
    except (OSError, WorkspaceError) as error:
        print(f"mlab-agent: the trace was not copied to {home}: {error}", file=sys.stderr)


def _remove_from_python_path() -> None:
    """Remove the agent's own code from the path that scripts get."""
    own = str(Path(__file__).resolve().parents[1])
    others = [entry for entry in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if entry and entry != own]
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)


if __name__ == "__main__":
    hide_environment("mlab_agent.metr")
    sys.exit(main(sys.argv[1:]))
