"""The actions that need no model: files, scripts, the score, the answer."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from mlab_agent.actions.action import Action, Argument, Context
from mlab_agent.cutting import cut_middle
from mlab_agent.homes import HomeError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "APPEND_FILE",
    "COPY_FILE",
    "END_LINE",
    "EXECUTE_SCRIPT",
    "FILENAME",
    "FINAL_ANSWER",
    "INSPECT_LINES",
    "LIST_FILES",
    "READ_FILE",
    "SCORE",
    "START_LINE",
    "UNDO_EDIT",
    "WRITE_FILE",
    "diff",
]

_Input = dict[str, Any]

FILENAME = Argument(
    "filename",
    "a path in the workspace",
    also=("file_name", "file", "path", "script_name", "script", "script_filename"),
)
_CONTENT = Argument("content", "the text", also=("text", "contents"))
START_LINE = Argument("start_line_number", "the first line, counted from 1", "integer", also=("start_line", "start"))
END_LINE = Argument("end_line_number", "the last line, which is included", "integer", also=("end_line", "end"))


def diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """Return a unified diff, with a word in place of an empty one."""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), old_name, new_name)
    shown = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return shown or "(no difference)\n"


def _list_files(context: Context, given: Mapping[str, Any]) -> str:
    directory = given.get("directory") or "."
    entries = context.home.list(directory)
    if not entries:
        return f"{directory} is empty."
    marks = {"directory": "/", "link": "@", "file": "", "other": "?"}
    most = context.limits.list_entries
    lines = [
        f"{entry.name}{marks[entry.kind]}"
        + (f"  {entry.size} bytes" if entry.kind == "file" else "")
        + ("  (read-only)" if entry.read_only else "")
        for entry in entries[:most]
    ]
    if len(entries) > most:
        lines.append(f"[and {len(entries) - most} more]")
    return cut_middle("\n".join(lines), context.limits.observation_chars)


def _read_file(context: Context, given: Mapping[str, Any]) -> str:
    text = context.home.read(given["filename"])
    if not text:
        return f"{given['filename']} is empty."
    where = f"{_count_lines(text)} lines in all; use Inspect Script Lines or Understand File"
    return cut_middle(text, context.limits.observation_chars, where)


def _write_file(context: Context, given: Mapping[str, Any]) -> str:
    data = _encoded(given["content"])
    context.save(given["filename"], data)
    return f"Wrote {given['filename']}: {len(data)} bytes, {_count_lines(given['content'])} lines."


def _append_file(context: Context, given: Mapping[str, Any]) -> str:
    name, home = given["filename"], context.home
    home.check_writable(name)
    before = home.read_bytes(name) if home.exists(name) else b""
    data = before + _encoded(given["content"])
    context.save(name, data)
    return f"Appended {len(data) - len(before)} bytes to {name}, which now has {len(data)}."


def _copy_file(context: Context, given: Mapping[str, Any]) -> str:
    source, destination = given["source"], given["destination"]
    if context.home.name(source) == context.home.name(destination):
        raise HomeError(f"{source} and {destination} are the same file")
    if not context.home.exists(source):
        raise HomeError(f"{source} does not exist")
    context.keep(destination)
    context.home.copy(source, destination)
    return f"Copied {source} to {destination}."


def _inspect_lines(context: Context, given: Mapping[str, Any]) -> str:
    name, most = given["filename"], context.limits.inspect_lines
    start, end = max(1, given["start_line_number"]), given["end_line_number"]
    if end - start >= most:
        raise HomeError(f"lines {start} to {end} are {end - start + 1}; at most {most} can be inspected at a time")
    lines = context.home.read(name).splitlines()
    if end < start:
        return f"{name} has {len(lines)} lines; there are none from {start} to {end}, since the range is reversed."
    if start > len(lines):
        return f"{name} has {len(lines)} lines, and line {start} is after its end."
    shown = "\n".join(lines[start - 1 : end])
    head = f"{name} has {len(lines)} lines. Lines {start} to {min(end, len(lines))}:"
    return f"{head}\n{cut_middle(shown, context.limits.observation_chars)}"


def _undo_edit(context: Context, given: Mapping[str, Any]) -> str:
    name = context.home.name(given["filename"])
    kept = context.journal.last(name)
    if kept is None:
        raise HomeError(f"{name}: there is no write to undo")
    context.home.check_writable(name)
    if kept.before is None:
        if context.home.exists(name):
            context.home.remove(name)
        said = f"Undone: {name} did not exist before the last write and was removed."
    else:
        context.home.write_bytes(name, kept.before)
        text = cut_middle(kept.before.decode(errors="replace"), context.limits.observation_chars)
        said = f"Undone: {name} is what it was before the last write:\n{text}"
    context.journal.drop(name)
    return said


def _execute_script(context: Context, given: Mapping[str, Any]) -> str:
    limit = min(given.get("time_limit_s") or context.limits.execute_s, context.limits.execute_s)
    left = context.seconds_left()
    if left is not None and left < limit:
        limit = max(left, 0.0)
    if limit <= 0:
        raise HomeError("there is no time left to run anything; give the final answer")
    done = context.home.execute(given["filename"], given.get("arguments") or [], limit)
    if done.timed_out:
        end = f"Stopped at its time limit, after {done.seconds:.1f} s; there is no exit status."
    else:
        end = f"Exit status {done.status}, after {done.seconds:.1f} s."
    parts = [end, *done.notes]
    if done.whole:
        parts.append(f"All of the output is in {done.whole}.")
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        each = context.limits.observation_chars // 2
        parts.append(f"{name}:\n{cut_middle(text, each).rstrip()}" if text.strip() else f"{name}: (empty)")
    return "\n".join(parts)


def _score(context: Context, _given: Mapping[str, Any]) -> str:
    said = context.home.score()
    if said is None:
        raise HomeError("scores cannot be asked for here")
    return said


def _final_answer(context: Context, given: Mapping[str, Any]) -> str:
    context.home.finish(given["final_answer"])
    return "The answer was handed in."


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise HomeError(
            f"the content cannot be written as UTF-8: character {error.start} is half of a character"
        ) from None


LIST_FILES = Action(
    "List Files",
    "Shows what is in a directory.",
    (Argument("directory", 'a path in the workspace, such as "."', required=False, also=("dir_path", "dir", "path")),),
    "the names, directories with a slash at the end",
    _list_files,
)
READ_FILE = Action(
    "Read File",
    "Shows a whole text file. For long ones use Understand File or Inspect Script Lines.",
    (FILENAME,),
    "the text; the middle of a long one is left out",
    _read_file,
)
WRITE_FILE = Action(
    "Write File",
    "Writes a whole file; what was in it before is replaced.",
    (FILENAME, _CONTENT),
    "whether it was written",
    _write_file,
)
APPEND_FILE = Action(
    "Append File",
    "Writes a text at the end of a file, exactly as it is given; a missing file is made.",
    (FILENAME, _CONTENT),
    "whether it was written",
    _append_file,
)
COPY_FILE = Action(
    "Copy File",
    "Copies a file to another name; a file of that name is replaced.",
    (
        Argument("source", "the path of the file", also=("source_filename",)),
        Argument("destination", "the path of the copy", also=("destination_filename", "target")),
    ),
    "whether it was copied",
    _copy_file,
)
INSPECT_LINES = Action(
    "Inspect Script Lines",
    "Shows some lines of a file as they are, at most 101 at a time.",
    (FILENAME, START_LINE, END_LINE),
    "the lines, and how many there are in all",
    _inspect_lines,
)
UNDO_EDIT = Action(
    "Undo Edit Script",
    "Undoes the last write of a file, by whichever action it was made; again, the one before.",
    (FILENAME,),
    "the content after the undo",
    _undo_edit,
)
EXECUTE_SCRIPT = Action(
    "Execute Script",
    "Runs a Python or shell script that exists, in the workspace. All it has started is ended with it.",
    (
        FILENAME,
        Argument("arguments", "a list of strings for its command line", "strings", required=False, also=("args",)),
        Argument("time_limit_s", "seconds after which it is stopped", "number", required=False, also=("timeout",)),
    ),
    "exit status, stdout and stderr; of long ones the middle is left out and a file has all",
    _execute_script,
)
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
    (Argument("final_answer", "the answer in words", also=("answer", "final answer", "submission")),),
    "nothing; the work is over",
    _final_answer,
)
