"""Actions that need no model: files, scripts, the score, the final answer."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from mlab_agent.actions.action import Action, Argument, Context
from mlab_agent.truncate import truncate_middle
from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Mapping

FILENAME = Argument(
    "filename",
    "a path in the workspace",
    aliases=("file_name", "file", "path", "script_name", "script", "script_filename"),
)
_CONTENT = Argument("content", "the text", aliases=("text", "contents"))
START_LINE = Argument("start_line_number", "the first line, counted from 1", "integer", aliases=("start_line", "start"))
END_LINE = Argument("end_line_number", "the last line, which is included", "integer", aliases=("end_line", "end"))


def diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """Return a unified diff; an empty one is stated in words."""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), old_name, new_name)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return text or "(no difference)\n"


def _list_files(context: Context, arguments: Mapping[str, Any]) -> str:
    directory = arguments.get("directory") or "."
    entries = context.workspace.list_directory(directory)
    if not entries:
        return f"{directory} is empty."
    marks = {"directory": "/", "link": "@", "file": "", "other": "?"}
    limit = context.limits.list_entries
    lines = [
        f"{_one_line(entry.name)}{marks[entry.kind]}"
        + (f"  {entry.size} bytes" if entry.kind == "file" else "")
        + ("  (read-only)" if entry.read_only else "")
        for entry in entries[:limit]
    ]
    if len(entries) > limit:
        lines.append(f"[and {len(entries) - limit} more]")
    return truncate_middle("\n".join(lines), context.limits.observation_chars)


def _one_line(name: str) -> str:
    """Return a name with line ends and control characters as JSON and Python write them."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)


def _read_file(context: Context, arguments: Mapping[str, Any]) -> str:
    text = context.workspace.read(arguments["filename"])
    if not text:
        return f"{arguments['filename']} is empty."
    hint = f"{_count_lines(text)} lines in all; use Inspect Script Lines or Understand File"
    return truncate_middle(text, context.limits.observation_chars, hint)


def _write_file(context: Context, arguments: Mapping[str, Any]) -> str:
    data = _encoded(arguments["content"])
    context.save(arguments["filename"], data)
    return f"Wrote {arguments['filename']}: {len(data)} bytes, {_count_lines(arguments['content'])} lines."


def _append_file(context: Context, arguments: Mapping[str, Any]) -> str:
    name, workspace = arguments["filename"], context.workspace
    workspace.check_writable(name)
    before = workspace.read_bytes(name) if workspace.exists(name) else b""
    data = before + _encoded(arguments["content"])
    context.save(name, data)
    return f"Appended {len(data) - len(before)} bytes to {name}, which now has {len(data)}."


def _copy_file(context: Context, arguments: Mapping[str, Any]) -> str:
    source, destination = arguments["source"], arguments["destination"]
    if context.workspace.name(source) == context.workspace.name(destination):
        raise WorkspaceError(f"{source} and {destination} are the same file")
    if not context.workspace.exists(source):
        raise WorkspaceError(f"{source} does not exist")
    context.record(destination)
    context.workspace.copy(source, destination)
    return f"Copied {source} to {destination}."


def _inspect_lines(context: Context, arguments: Mapping[str, Any]) -> str:
    name, limit = arguments["filename"], context.limits.inspect_lines
    start, end = max(1, arguments["start_line_number"]), arguments["end_line_number"]
    if end - start >= limit:
        raise WorkspaceError(
            f"lines {start} to {end} are {end - start + 1}; at most {limit} can be inspected at a time"
        )
    lines = context.workspace.read(name).splitlines()
    if end < start:
        return f"{name} has {len(lines)} lines; there are none from {start} to {end}, since the range is reversed."
    if start > len(lines):
        return f"{name} has {len(lines)} lines, and line {start} is after its end."
    selected = "\n".join(lines[start - 1 : end])
    head = f"{name} has {len(lines)} lines. Lines {start} to {min(end, len(lines))}:"
    return f"{head}\n{truncate_middle(selected, context.limits.observation_chars)}"


def _undo_edit(context: Context, arguments: Mapping[str, Any]) -> str:
    name = context.workspace.name(arguments["filename"])
    writes = context.writes(name)
    if not writes:
        raise WorkspaceError(f"{name}: there is no write to undo")
    context.workspace.check_writable(name)
    if (blob := writes[-1]) is None:
        if context.workspace.exists(name):
            context.workspace.remove(name)
        observation = f"Undone: {name} did not exist before the last write and was removed."
    else:
        before = context.workspace.store.get(blob)
        context.workspace.write_bytes(name, before)
        text = truncate_middle(before.decode(errors="replace"), context.limits.observation_chars)
        observation = f"Undone: {name} is what it was before the last write:\n{text}"
    context.emit("undone", path=name)
    return observation


def _execute_script(context: Context, arguments: Mapping[str, Any]) -> str:
    time_limit = min(arguments.get("time_limit_s") or context.limits.execute_s, context.limits.execute_s)
    left = context.seconds_left()
    if left is not None and left < time_limit:
        time_limit = max(left, 0.0)
    if time_limit <= 0:
        raise WorkspaceError("there is no time left to run anything; give the final answer")
    result = context.workspace.execute(arguments["filename"], arguments.get("arguments") or [], time_limit)
    if result.timed_out:
        end = f"Stopped at its time limit, after {result.seconds:.1f} s; there is no exit status."
    elif result.status is None:
        end = f"Stopped after {result.seconds:.1f} s; there is no exit status."
    else:
        end = f"Exit status {result.status}, after {result.seconds:.1f} s."
    parts = [end, *result.notes]
    if result.output_file:
        parts.append(f"All of the output is in {result.output_file}.")
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        limit = context.limits.observation_chars // 2
        parts.append(f"{name}:\n{truncate_middle(text, limit).rstrip()}" if text.strip() else f"{name}: (empty)")
    return "\n".join(parts)


def _score(context: Context, _arguments: Mapping[str, Any]) -> str:
    message = context.workspace.score()
    if message is None:
        raise WorkspaceError("scores cannot be asked for here")
    return message


def _final_answer(context: Context, arguments: Mapping[str, Any]) -> str:
    context.workspace.finish(arguments["final_answer"])
    return "The answer was handed in."


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"the content cannot be written as UTF-8: character {error.start} is half of a character"
        ) from None


BASIC_ACTIONS = (
    Action(
        "List Files",
        "Shows what is in a directory.",
        (
            Argument(
                "directory", 'a path in the workspace, such as "."', required=False, aliases=("dir_path", "dir", "path")
            ),
        ),
        "the names, directories with a slash at the end",
        _list_files,
    ),
    Action(
        "Read File",
        "Shows a whole text file. For long ones use Understand File or Inspect Script Lines.",
        (FILENAME,),
        "the text; the middle of a long one is left out",
        _read_file,
    ),
    Action(
        "Write File",
        "Writes a whole file; what was in it before is replaced.",
        (FILENAME, _CONTENT),
        "whether it was written",
        _write_file,
    ),
    Action(
        "Append File",
        "Writes a text at the end of a file, exactly as it is given; a missing file is made.",
        (FILENAME, _CONTENT),
        "whether it was written",
        _append_file,
    ),
    Action(
        "Copy File",
        "Copies a file to another name; a file of that name is replaced.",
        (
            Argument("source", "the path of the file", aliases=("source_filename",)),
            Argument("destination", "the path of the copy", aliases=("destination_filename", "target")),
        ),
        "whether it was copied",
        _copy_file,
    ),
    Action(
        "Inspect Script Lines",
        "Shows some lines of a file as they are, at most 101 at a time.",
        (FILENAME, START_LINE, END_LINE),
        "the lines, and how many there are in all",
        _inspect_lines,
    ),
    Action(
        "Undo Edit Script",
        "Undoes the last write of a file, by whichever action it was made; again, the one before.",
        (FILENAME,),
        "the content after the undo",
        _undo_edit,
    ),
    Action(
        "Execute Script",
        "Runs a Python or shell script that exists, in the workspace. All it has started is ended with it.",
        (
            FILENAME,
            Argument(
                "arguments", "a list of strings for its command line", "strings", required=False, aliases=("args",)
            ),
            Argument(
                "time_limit_s", "seconds after which it is stopped", "number", required=False, aliases=("timeout",)
            ),
        ),
        "exit status, stdout and stderr; of long ones the middle is left out and a file has all",
        _execute_script,
    ),
)
"""All of them but SCORE and FINAL_ANSWER, in the order in which the model is told of them."""
SCORE = Action(
    "Score",
    "Has the workspace scored as it is now. It can be asked for again.",
    (),
    "what the scorer says",
    _score,
)
FINAL_ANSWER = Action(
    "Final Answer",
    "Hands in the answer and ends the work; use it once, when nothing is left to do.",
    (Argument("final_answer", "the answer in words", aliases=("answer", "final answer", "submission")),),
    "nothing; the work is over",
    _final_answer,
)
