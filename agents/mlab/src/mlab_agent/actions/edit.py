"""Edit Script and Edit Script Segment: a model edits a text, and replies with all of it or with replaced lines.

The last line of a reply is a marker that cannot be in the text. So a reply that was cut off, or a code fence within a
script, never leads to a truncated file.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from typing import Annotated

from mlab_agent.actions.action import Action, Context, EndLine, Filename, StartLine, TruncatedReply, argument
from mlab_agent.truncate import truncate_middle
from mlab_agent.workspaces.files import WorkspaceError

EDIT = "edit script"
"""The purpose of calls that edit a file; they have a model of their own."""
_MAX_CHARS = 200_000  # of a text that is edited
_TRIES = 2
_FENCED = re.compile(r"\A[^`~]*^(`{3,}|~{3,})[\w+-]*\n(.*)^\1[ \t]*\Z", re.MULTILINE | re.DOTALL)
_OMISSION = re.compile(
    r"^[ \t]*(?:#|//|--|%)?[ \t]*(?:\.{3}|\u2026).{0,12}"
    r"\b(?:rest|existing|remaining|unchanged|same|previous|omitted)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_PROMPT = """\
Edit the text below, {name}, as told. Change nothing else, and keep the indentation.

What to do: {instruction}

Reply in one of these two forms, without fences, and with the marker lines exactly as here.

1. The whole new text, never shortened:
{marker} WHOLE
(the new text)
{marker} DONE

2. Replacements, which suit a long text with few changes. The old lines must be copied exactly, and stand in the text \
once only; give as many replacements as are needed:
{marker} OLD
(lines as they are)
{marker} NEW
(lines that take their place; none to remove them)
{marker} DONE

The last line of the reply is {marker} DONE in any case. The text:
{marker} TEXT
{old}{marker} END
"""
_Instruction = Annotated[
    str, argument("what to change, in detail, such as: change epoch to 20", "instruction", "edit_instructions")
]
_SaveFilename = Annotated[str, argument("the path to save to, which may be the same", "save_name", "save_file_name")]


class EditReplyError(Exception):
    """The reply is no edited text; the message says why."""


@Action
def edit_script(
    context: Context, filename: Filename, edit_instruction: _Instruction, save_filename: _SaveFilename
) -> str:
    """Edits a whole script as told in words; a missing one is made.

    Comes back: a unified diff of what was changed; check it
    """
    return _edit(context, filename, edit_instruction, save_filename)


@Action
def edit_script_segment(
    context: Context,
    *,
    filename: Filename,
    start_line_number: StartLine,
    end_line_number: EndLine,
    edit_instruction: _Instruction,
    save_filename: _SaveFilename,
) -> str:
    """Edits some lines of a script as told in words.

    Comes back: a unified diff of what was changed; check it
    """
    lines = (max(1, start_line_number), end_line_number)
    return _edit(context, filename, edit_instruction, save_filename, lines)


def _edit(context: Context, name: str, instruction: str, save: str, span: tuple[int, int] | None = None) -> str:
    """Have the model edit a script, which need not exist, or the lines of it from the first to the last one."""
    context.workspace.check_writable(save)
    try:
        old = context.workspace.read_bytes(name).decode() if context.workspace.exists(name) else ""
    except UnicodeDecodeError:
        raise WorkspaceError(f"{name} is not UTF-8 text, and editing would damage it") from None
    if span is None:
        new = _edited(context, name, old, instruction, advice="edit a segment of it")
    else:
        lines, (start, end) = old.splitlines(keepends=True), span
        if not start <= end or start > max(1, len(lines)):
            raise WorkspaceError(f"lines {start} to {end} are no segment of {name}, which has {len(lines)} lines")
        segment, after = "".join(lines[start - 1 : end]), "".join(lines[end:])
        shown = f"{name}, lines {start}-{min(end, len(lines))}"
        new = _edited(context, shown, segment, instruction, advice="take fewer lines")
        new = "".join(lines[: start - 1]) + new + ("\n" if new and after and not new.endswith("\n") else "") + after
    context.save(save, new.encode())
    diff = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), name, save)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)
    text = truncate_middle(text, context.limits.observation_chars, "Inspect Script Lines shows them")
    return f"Saved {save}. The difference to {name}:\n" + (text or "(no difference)\n") + _syntax_note(save, new)


def _syntax_note(name: str, text: str) -> str:
    """Return a note about a Python file that does not compile."""
    if name.endswith(".py"):
        try:
            compile(text, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"\nNote that {name} does not compile: {error}"
    return ""


def _edited(context: Context, name: str, old: str, instruction: str, advice: str) -> str:
    """Return the model's new text, which is complete for certain."""
    if len(old) > _MAX_CHARS:
        raise WorkspaceError(
            f"{name} has {len(old)} characters, more than the {_MAX_CHARS} that can be edited; {advice}"
        )
    marker = _choose_marker(old, instruction)
    shown = old if old.endswith("\n") or not old else old + "\n"
    prompt, problem = _PROMPT.format(name=name, instruction=instruction, marker=marker, old=shown), ""
    for _try in range(_TRIES):
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


def _choose_marker(old: str, instruction: str) -> str:
    """Return a word that is in neither text; the same texts always give the same word, so that a run can be resumed."""
    count = 0
    while True:
        marker = "EDIT-" + hashlib.sha256(f"{count}\0{instruction}\0{old}".encode(errors="replace")).hexdigest()[:6]
        if marker not in old and marker not in instruction:
            return marker
        count += 1


def read_edited_text(reply: str, old: str, marker: str) -> str:
    """Return the edited text.

    Raises:
        EditReplyError: if the reply does not determine it.
    """
    reply = reply.replace("\r\n", "\n")
    _start, *parts = re.split(rf"^[*` \t]*{marker} *(\w*)[*` \t]*(?:\n|\Z)", reply, flags=re.MULTILINE)
    words, texts = parts[::2], parts[1::2]
    if not words:  # some models write a code block instead of the markers
        block = _FENCED.search(reply.strip())
        if block is None or re.search(rf"^{block[1]}", block[2], re.MULTILINE):
            raise EditReplyError("it has neither the marker lines nor exactly one code block at its end")
        new = block[2]
    elif words[-1] != "DONE":
        raise EditReplyError(f"it does not end with {marker} DONE, so that it was cut off")
    elif words == ["WHOLE", "DONE"]:
        block = _FENCED.search(texts[0].rstrip())
        new = block[2] if block else texts[0]
    elif words[:-1] == ["OLD", "NEW"] * (len(words) // 2) and len(words) > 1:
        new = old.replace("\r\n", "\n")
        for lines, replacement in zip(texts[:-1:2], texts[1:-1:2], strict=True):
            new = _replace_lines(new, lines, replacement)
    else:
        raise EditReplyError(
            f"its marker lines are {', '.join(words)}; expected {marker} WHOLE, or OLD and NEW in turn"
        )
    omission = next((found for match in _OMISSION.finditer(new) if (found := match[0].strip()) not in old), None)
    if omission:
        raise EditReplyError(f"it leaves something out: {omission[:80]!r}")
    if old.strip() and not new.strip():
        raise EditReplyError("the new text is empty")
    if new and old.endswith("\n") and not new.endswith("\n"):
        new += "\n"
    return new.replace("\n", "\r\n") if "\r\n" in old and "\n" not in old.replace("\r\n", "") else new


def _replace_lines(text: str, lines: str, replacement: str) -> str:
    """Replace whole lines that occur exactly once."""
    if not lines.strip():
        raise EditReplyError("the old lines of a replacement are empty")
    padded = f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
    count = len(re.findall(rf"(?=\n{re.escape(lines)})", padded))
    if count != 1:
        problem = "are not in the text" if count == 0 else f"are in the text {count} times"
        raise EditReplyError(f"the old lines that begin with {lines.strip().splitlines()[0][:60]!r} {problem}")
    new = padded.replace(f"\n{lines}", f"\n{replacement}", 1)[1:]
    return new if text.endswith("\n") else new.removesuffix("\n")
