"""The actions that ask the model: understand a file, edit a script, edit a segment of one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mlab_agent.actions.action import Action, Argument, Context, CutReply
from mlab_agent.actions.rewriting import RewriteError, marker_of, read_rewrite, request
from mlab_agent.actions.simple import END_LINE, FILENAME, START_LINE, diff
from mlab_agent.cutting import cut_middle
from mlab_agent.homes import HomeError
from mlab_agent.retrieval import Passage, outline, passages_of, retrieve

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EDIT_SCRIPT", "EDIT_SEGMENT", "UNDERSTAND_FILE"]

_DESCRIBE = (
    "Describe what the passages say about this, in detail where it matters: names, values, shapes, and the numbers of "
    "the lines they are on. State only what is to be seen there. Say expressly what is wanted and cannot be found."
)
_MORE = re.compile(r"^\W*MORE:[ \t]*(.+)$", re.MULTILINE)


def _understand_file(context: Context, given: Mapping[str, Any]) -> str:
    name, query, limits = given["filename"], given["query"], context.limits
    text = context.home.read(name)
    if not text.strip():
        return f"{name} is empty."
    passages = passages_of(text)
    seen = frozenset(range(len(passages)))
    if len(text) > limits.understand_chars:
        seen = frozenset(retrieve(passages, query, limits.understand_chars))
    fresh, found, asked = seen, "", query
    for left in reversed(range(limits.understand_rounds)):
        more = left > 0 and len(seen) < len(passages)
        found = _ask(
            context, _understanding(name, text, passages=passages, fresh=fresh, query=query, found=found, more=more)
        )
        wanted = _MORE.search(found) if more else None
        if wanted is None:
            break
        found, asked = _MORE.sub("", found).strip(), wanted[1]
        fresh = frozenset(_wanted(passages, asked, limits.understand_chars, seen))
        if not fresh:
            break
        seen |= fresh
    read = "all of it was read" if len(seen) == len(passages) else f"read: {_places(passages, seen)}"
    lines = len(text.splitlines())
    return f"{cut_middle(found, limits.observation_chars)}\n[{name} has {lines} lines; {read}]"


def _ask(context: Context, prompt: str) -> str:
    try:
        return context.ask(prompt, "understand file").strip()
    except CutReply as reply:
        return f"{str(reply).strip()}\n[this answer was cut off]"


def _understanding(
    name: str, text: str, *, passages: list[Passage], fresh: frozenset[int], query: str, found: str, more: bool
) -> str:
    shown = "\n".join(f"[{passages[each].place}]\n{passages[each].text.rstrip()}" for each in sorted(fresh))
    whole = len(fresh) == len(passages)
    parts = [
        f"Below {'is the file' if whole else 'are passages of the file'} {name}, {len(text.splitlines())} lines.",
        f"What is wanted of it: {query}",
        _DESCRIBE,
    ]
    if found:
        parts.append(f"What was found in other passages of it; include what is right in your answer:\n{found}")
    if not whole and (lines := outline(text)):
        parts.append(f"Lines of the whole file that begin a definition or a section:\n{lines}")
    if more:
        parts.append(
            "If what is missing is likely to be in other lines of the file, end with one line 'MORE: ' and either line "
            "ranges such as 120-180, 300-340 or words to look for."
        )
    parts.append(f"{'The file' if whole else 'The passages'}:\n{shown}")
    return "\n\n".join(parts)


def _wanted(passages: list[Passage], asked: str, chars: int, seen: frozenset[int]) -> list[int]:
    ranges = [(int(first), int(last or first)) for first, last in re.findall(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", asked)]
    if not ranges or re.search(r"[^\W\d]{3}", asked.replace("lines", "").replace("line", "")):
        return retrieve(passages, asked, chars, seen) if len(seen) < len(passages) else []
    chosen = []
    for index, passage in enumerate(passages):
        inside = any(passage.first <= last and first <= passage.last for first, last in ranges)
        if inside and index not in seen and len(passage.text) <= chars:
            chosen.append(index)
            chars -= len(passage.text)
    return chosen


def _places(passages: list[Passage], seen: frozenset[int]) -> str:
    """Return which lines were seen, adjoining passages together."""
    spans: list[tuple[int, int]] = []
    for index in sorted(seen):
        passage = passages[index]
        if spans and passage.first <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], passage.last)
        else:
            spans.append((passage.first, passage.last))
    return "lines " + ", ".join(f"{first}-{last}" for first, last in spans)


def _edit_script(context: Context, given: Mapping[str, Any]) -> str:
    name, save = given["filename"], given["save_filename"]
    old = _editable(context, name, save)
    new = _rewritten(context, name, old, given["edit_instruction"], whole=True)
    return _saved(context, name, old, new, save)


def _edit_segment(context: Context, given: Mapping[str, Any]) -> str:
    name, save = given["filename"], given["save_filename"]
    start, end = max(1, given["start_line_number"]), given["end_line_number"]
    old = _editable(context, name, save)
    lines = old.splitlines(keepends=True)
    if not start <= end or start > max(1, len(lines)):
        raise HomeError(f"lines {start} to {end} are no segment of {name}, which has {len(lines)} lines")
    before, segment, after = "".join(lines[: start - 1]), "".join(lines[start - 1 : end]), "".join(lines[end:])
    new = _rewritten(context, f"{name}, lines {start}-{min(end, len(lines))}", segment, given["edit_instruction"])
    if new and after and not new.endswith("\n"):
        new += "\n"
    return _saved(context, name, old, before + new + after, save)


def _editable(context: Context, name: str, save: str) -> str:
    """Return the text of a file that can be edited without a loss; a missing one is empty."""
    context.home.check_writable(save)
    if not context.home.exists(name):
        return ""
    try:
        return context.home.read_bytes(name).decode()
    except UnicodeDecodeError:
        raise HomeError(f"{name} is not UTF-8 text, and editing would damage it") from None


def _rewritten(context: Context, name: str, old: str, instruction: str, *, whole: bool = False) -> str:
    """Return the new text, of which it is certain that the model meant it to be all."""
    if len(old) > context.limits.edit_chars:
        how = "edit a segment of it" if whole else "take fewer lines"
        raise HomeError(
            f"{name} has {len(old)} characters, more than the {context.limits.edit_chars} that can be edited; {how}"
        )
    marker = marker_of(old, instruction)
    prompt, why = request(name, old, instruction, marker), ""
    for _try in range(context.limits.edit_tries):
        again = f"\n\nYour last reply could not be used: {why}. Keep to the form." if why else ""
        try:
            return read_rewrite(context.ask(prompt + again, "edit script"), old, marker)
        except CutReply:
            why = "it ended at the limit of tokens; give replacements of few lines rather than the whole text"
        except RewriteError as error:
            why = str(error)
    raise HomeError(
        f"{name} was not edited, and nothing was written: the editing model's reply could not be used: {why}"
    )


def _saved(context: Context, name: str, old: str, new: str, save: str) -> str:
    context.save(save, new.encode())
    said = cut_middle(diff(old, new, name, save), context.limits.observation_chars, "Inspect Script Lines shows them")
    return f"Saved {save}. The difference to {name}:\n{said}{_broken(save, new)}"


def _broken(name: str, text: str) -> str:
    """Return a word about a Python file that does not compile."""
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
    also=("instruction", "edit_instructions"),
)
_SAVE = Argument("save_filename", "the path to save to, which may be the same", also=("save_name", "save_file_name"))

UNDERSTAND_FILE = Action(
    "Understand File",
    "Reads a file for you, also a long one, and answers a question about it.",
    (
        FILENAME,
        Argument(
            "query",
            "what to look for, in detail, such as: the model architecture",
            also=("things_to_look_for", "question"),
        ),
    ),
    "a description with line numbers, and what could not be found",
    _understand_file,
)
EDIT_SCRIPT = Action(
    "Edit Script",
    "Edits a whole script as told in words; a missing one is made.",
    (FILENAME, _INSTRUCTION, _SAVE),
    "a unified diff of what was changed; check it",
    _edit_script,
)
EDIT_SEGMENT = Action(
    "Edit Script Segment",
    "Edits some lines of a script as told in words.",
    (FILENAME, START_LINE, END_LINE, _INSTRUCTION, _SAVE),
    "a unified diff of what was changed; check it",
    _edit_segment,
)
