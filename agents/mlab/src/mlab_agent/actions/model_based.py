"""Actions that ask a model: understand a file, edit a script, edit a segment of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlab_agent.actions.action import Action, Argument, Context, TruncatedReply
from mlab_agent.actions.basic import END_LINE, FILENAME, START_LINE, diff
from mlab_agent.actions.edit_reply import EditReplyError, choose_marker, edit_prompt, read_edited_text
from mlab_agent.retrieval import retrieve, split_passages
from mlab_agent.truncate import truncate_middle
from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Mapping

EDIT = "edit script"
"""The purpose of calls that edit a file; they have a model of their own."""
_DESCRIBE = (
    "Describe what the passages say about this, in detail where it matters: names, values, shapes, and the numbers of "
    "the lines they are on. State only what is to be seen there. Say expressly what is wanted and cannot be found."
)


def _understand_file(context: Context, arguments: Mapping[str, Any]) -> str:
    name, query, limits = arguments["filename"], arguments["query"], context.limits
    text = context.workspace.read(name)
    if not text.strip():
        return f"{name} is empty."
    passages = split_passages(text)
    chosen = list(range(len(passages)))
    if len(text) > limits.understand_chars:
        chosen = retrieve(passages, query, limits.understand_chars)
    lines = len(text.splitlines())
    whole = len(chosen) == len(passages)
    head = f"Below {'is the file' if whole else 'are passages of the file'} {name}, {lines} lines."
    contents = "\n".join(f"[{passages[index].location}]\n{passages[index].text.rstrip()}" for index in chosen)
    try:
        answer = context.ask(f"{head}\n\nWhat is wanted of it: {query}\n\n{_DESCRIBE}\n\n{contents}", "understand file")
    except TruncatedReply as reply:
        answer = f"{str(reply).strip()}\n[this answer was cut off]"
    read = ", ".join(dict.fromkeys(f"{passages[index].first}-{passages[index].last}" for index in chosen))
    extent = "all of it was read" if whole else f"read: lines {read}; ask with other words for other passages"
    return f"{truncate_middle(answer.strip(), limits.observation_chars)}\n[{name} has {lines} lines; {extent}]"


def _edit_script(context: Context, arguments: Mapping[str, Any]) -> str:
    name, save = arguments["filename"], arguments["save_filename"]
    old = _editable(context, name, save)
    new = _edited(context, name, old, arguments["edit_instruction"], whole=True)
    return _saved(context, name, old, new, save)


def _edit_segment(context: Context, arguments: Mapping[str, Any]) -> str:
    name, save = arguments["filename"], arguments["save_filename"]
    start, end = max(1, arguments["start_line_number"]), arguments["end_line_number"]
    old = _editable(context, name, save)
    lines = old.splitlines(keepends=True)
    if not start <= end or start > max(1, len(lines)):
        raise WorkspaceError(f"lines {start} to {end} are no segment of {name}, which has {len(lines)} lines")
    before, segment, after = "".join(lines[: start - 1]), "".join(lines[start - 1 : end]), "".join(lines[end:])
    new = _edited(context, f"{name}, lines {start}-{min(end, len(lines))}", segment, arguments["edit_instruction"])
    if new and after and not new.endswith("\n"):
        new += "\n"
    return _saved(context, name, old, before + new + after, save)


def _editable(context: Context, name: str, save: str) -> str:
    """Return the text of a file that editing does not damage; a missing one is empty."""
    context.workspace.check_writable(save)
    if not context.workspace.exists(name):
        return ""
    try:
        return context.workspace.read_bytes(name).decode()
    except UnicodeDecodeError:
        raise WorkspaceError(f"{name} is not UTF-8 text, and editing would damage it") from None


def _edited(context: Context, name: str, old: str, instruction: str, *, whole: bool = False) -> str:
    """Return the model's new text, which is complete for certain."""
    if len(old) > context.limits.edit_chars:
        advice = "edit a segment of it" if whole else "take fewer lines"
        raise WorkspaceError(
            f"{name} has {len(old)} characters, more than the {context.limits.edit_chars} that can be edited; {advice}"
        )
    marker = choose_marker(old, instruction)
    prompt, problem = edit_prompt(name, old, instruction, marker), ""
    for _try in range(context.limits.edit_tries):
        correction = f"\n\nYour last reply could not be used: {problem}. Keep to the form." if problem else ""
        try:
            return read_edited_text(context.ask(prompt + correction, EDIT), old, marker)
        except TruncatedReply:
            problem = "it ended at the limit of tokens; give replacements of few lines rather than the whole text"
        except EditReplyError as error:
            problem = str(error)
    raise WorkspaceError(
        f"{name} was not edited, and nothing was written: the editing model's reply could not be used: {problem}"
    )


def _saved(context: Context, name: str, old: str, new: str, save: str) -> str:
    context.save(save, new.encode())
    text = truncate_middle(
        diff(old, new, name, save), context.limits.observation_chars, "Inspect Script Lines shows them"
    )
    return f"Saved {save}. The difference to {name}:\n{text}{_syntax_note(save, new)}"


def _syntax_note(name: str, text: str) -> str:
    """Return a note about a Python file that does not compile."""
    if not name.endswith(".py"):
        return ""
    try:
        compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"\nNote that {name} does not compile: {error}"
    return ""


_INSTRUCTION = Argument(
    "edit_instruction",
    "what to change, in detail, such as: change epoch to 20",
    aliases=("instruction", "edit_instructions"),
)
_SAVE = Argument("save_filename", "the path to save to, which may be the same", aliases=("save_name", "save_file_name"))

MODEL_BASED_ACTIONS = (
    Action(
        "Understand File",
        "Reads a file for you, also a long one, and answers a question about it.",
        (
            FILENAME,
            Argument(
                "query",
                "what to look for, in detail, such as: the model architecture",
                aliases=("things_to_look_for", "question"),
            ),
        ),
        "a description with line numbers, and what could not be found",
        _understand_file,
    ),
    Action(
        "Edit Script",
        "Edits a whole script as told in words; a missing one is made.",
        (FILENAME, _INSTRUCTION, _SAVE),
        "a unified diff of what was changed; check it",
        _edit_script,
    ),
    Action(
        "Edit Script Segment",
        "Edits some lines of a script as told in words.",
        (FILENAME, START_LINE, END_LINE, _INSTRUCTION, _SAVE),
        "a unified diff of what was changed; check it",
        _edit_segment,
    ),
)
"""All of them, in the order in which the model is told of them."""
