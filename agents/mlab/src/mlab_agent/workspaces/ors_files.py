"""The files of an ORS session: every operation goes through the server's tool ``bash``.

The output of the shell comes back in base64 between two marks: clients lose white space at the borders of what a server
sends, and servers add remarks.
"""

from __future__ import annotations

import base64
import contextlib
import re
import secrets
import shlex
from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.workspaces.files import WorkspaceError, WorkspaceLostError
from mlab_agent.workspaces.ors_session import EpisodeFinishedError, OutcomeUnknownError
from mlab_agent.workspaces.shell_files import TIMEOUT_S, CommandEnd, ShellFiles, quoted

if TYPE_CHECKING:
    from mlab_agent.workspaces.ors_record import ToolResult
    from mlab_agent.workspaces.ors_session import OrsSession

_SENT_BYTES = 400_000  # at a time: commands have a longest length
_TRIES = 3  # of a call during which the server ends


class OrsFiles(ShellFiles):
    """The files below the directory in which the session's shell starts."""

    received_bytes = 20_000  # servers cut the middle out of longer outputs

    def __init__(self, session: OrsSession) -> None:
        super().__init__()
        self._session = session
        with contextlib.suppress(EpisodeFinishedError):  # then nothing asks for files
            self.root = self.shell("pwd -P").decode().strip()

    @override
    def _send(self, part: str, data: bytes, begin: str) -> str:
        begin = f"{begin} && : > {quoted(part)}"
        for start in range(0, len(data), _SENT_BYTES):
            piece = base64.b64encode(data[start : start + _SENT_BYTES]).decode()
            begin = f"{begin} && printf %s {piece} | base64 -d >> {quoted(part)}"
            if start + _SENT_BYTES < len(data):
                self.shell(begin)
                begin = "true"
        return begin

    @override
    def shell(self, script: str) -> bytes:
        """Run a few lines in the workspace, and return what they write.

        Raises:
            WorkspaceError: if they fail, with their message.
            WorkspaceLostError: if the server's bash does not answer at all.
        """
        mark = f"M{self.calls}x{secrets.token_hex(4)}"
        error = f"/tmp/{mark}"  # noqa: S108 - of the sandbox
        # The mark is put together there, so that a shell that echoes the command does not seem to answer.
        command = (
            f'( m={mark[:3]}; m="${{m}}{mark[3:]}"; printf %s: "$m";'
            f" (cd {shlex.quote(self.root)} && {script}) 2>{error}"
            f" | base64 -w0; s=${{PIPESTATUS[0]}}; printf ':%d:' \"$s\"; head -c 500 {error} | base64 -w0;"
            f' printf ":%s\\n" "$m"; rm -f {error} )'
        )
        for _again in range(_TRIES):  # what handles files may be done again
            with contextlib.suppress(OutcomeUnknownError):
                result = self._bash(command, TIMEOUT_S)
                if not result.interrupted:
                    break
        else:
            raise WorkspaceError("the server was stopped each time that this was called")
        answer = re.search(rf"{mark}:([\w+/=]*):(\d+):([\w+/=]*):{mark}", result.text)
        if answer is None:
            kind = WorkspaceError if result.text.strip() else WorkspaceLostError
            raise kind(f"the server's bash did not answer as it should: {result.text.strip()[-300:]!r}")
        if answer[2] != "0":
            message = base64.b64decode(answer[3]).decode(errors="replace").strip().rpartition("bash: ")[2]
            raise WorkspaceError(f"it failed in the session: {message or 'exit status ' + answer[2]}")
        return base64.b64decode(answer[1])

    def _bash(self, command: str, timeout_s: float) -> ToolResult:
        """Call the tool ``bash``, with the time limit if the tool takes one."""
        self.calls += 1
        arguments: dict[str, object] = {"command": command}
        if "timeout" in self._session.tools.get("bash", {}).get("properties", {}):
            arguments["timeout"] = timeout_s
        return self._session.call("bash", arguments)

    @override
    def run(self, command: str, cleanup: str, timeout_s: float) -> CommandEnd:
        result = self._bash(f"{command}; {cleanup}", timeout_s)
        return CommandEnd(result.text, result.interrupted)
