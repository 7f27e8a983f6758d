"""The agent with METR's interface: the functions ``reply``, ``get_response``, ``execute``, and a main for containers.

In a container of METR's workbench the task is in ``/home/agent/instructions.txt``, and the answer belongs in
``/home/agent/submission.txt``; ``main.sh`` runs this module there.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.api_key import restart_without_keys

if TYPE_CHECKING:
    from mlab_agent.agent import Agent
    from mlab_agent.response import Response

_HOME = Path("/home/agent")
_NO_ANSWER = "The agent ended before it gave an answer."


class MetrAgent:
    """The three functions of METR's agents, for an :class:`~mlab_agent.agent.Agent`."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def reply(self, message: str) -> str:
        """Take a message, the task first of all; act as long as replies have an action, and return the text without."""
        return self._agent.reply(message)

    def get_response(self) -> Response:
        """Call the API for one completion with the history until now."""
        return self._agent.get_response()

    def execute(self, response: Response) -> str:
        """Carry out the action of a response, append it and its output to the history, and return the output."""
        return self._agent.execute(response)


def main(arguments: list[str]) -> int:
    """Run the agent in a container with arguments of ``mlab-agent``, or resume a run that was killed, unchanged."""
    home = Path(os.environ.get("MLAB_AGENT_HOME", _HOME))
    run_directory = Path(os.environ.get("MLAB_AGENT_RUN_DIRECTORY", "/var/tmp/mlab-agent"))  # noqa: S108 - chosen by the user
    submission = home / "submission.txt"
    if not submission.exists():  # whatever happens from here on, there is one
        submission.write_text(_NO_ANSWER, encoding="utf-8")
    from mlab_agent.cli import main as command  # noqa: PLC0415 - the submission comes first
    from mlab_agent.trace import TRACE_FILE, has_begun  # noqa: PLC0415 - as above

    _remove_from_python_path()
    if has_begun(run_directory / TRACE_FILE):
        status = command(["resume", str(run_directory)])
    else:
        paths = ["--workdir", str(home), "--task-file", str(home / "instructions.txt"), "--submission", str(submission)]
        options = ["--run", str(run_directory), "--left-out", "scaffolding"]
        status = command([*paths, *options, *arguments])
    outputs = home / ".mlab-agent"
    if outputs.is_dir() and (run_directory / TRACE_FILE).exists():
        shutil.copyfile(run_directory / TRACE_FILE, outputs / TRACE_FILE)  # where METR's `export` finds it
    return status


def _remove_from_python_path() -> None:
    """Remove the agent's own code from the path that scripts get."""
    own = str(Path(__file__).resolve().parents[1])
    others = [entry for entry in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if entry and entry != own]
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)


if __name__ == "__main__":
    restart_without_keys("mlab_agent.metr", sys.argv[1:])
    sys.exit(main(sys.argv[1:]))
