"""Actions on a local directory, with a fake model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from mlab_agent.actions import ACTIONS, Context, Limits, TruncatedReply, actions_for, find
from mlab_agent.memory import MemoryLimits
from mlab_agent.models import Caps
from mlab_agent.state import RunState
from mlab_agent.workspaces.files import WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mlab_agent.workspaces.base import Workspace

pytestmark = pytest.mark.integration


@dataclass
class Model:
    """A fake of the model of helper calls: each reply is a text, or made from the prompt."""

    replies: list[str | Callable[[str], str]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    def ask(self, prompt: str, purpose: str) -> str:
        assert purpose
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        if callable(reply):
            return reply(prompt)
        if reply.startswith("CUT"):
            raise TruncatedReply(reply)
        return reply


@dataclass
class ActionRunner:
    """Runs actions by their names."""

    context: Context
    model: Model

    def __call__(self, name: str, /, **given: object) -> str:
        action = ACTIONS[name]
        return action.run(self.context, **action.check(given))


def action_runner(
    workspace: Workspace, *replies: str | Callable[[str], str], limits: Limits | None = None
) -> ActionRunner:
    model, state = Model(list(replies)), RunState.empty(MemoryLimits(), Caps())

    def emit(kind: str, **fields: object) -> None:
        state.apply({"kind": kind, "elapsed": 0.0, **fields})

    return ActionRunner(Context(workspace, state.writes_of, emit, model.ask, limits or Limits()), model)


def marker(prompt: str) -> str:
    """Return the marker that an editing prompt asks for."""
    return str(re.findall(r"^(EDIT-\w+) END$", prompt, re.MULTILINE)[-1])


def whole(text: str) -> Callable[[str], str]:
    return lambda prompt: f"Here it is.\n{marker(prompt)} WHOLE\n{text}\n{marker(prompt)} DONE\n"


LOOP = "    for epoch in range(epochs):\n        print(epoch)\n"
SCRIPT = f"import os\n\nepochs = 10\n\n\ndef run():\n{LOOP}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    (directory / "train.py").write_text(SCRIPT)
    return directory


@pytest.fixture
def workspace(directory: Path, tmp_path: Path) -> Iterator[LocalWorkspace]:
    workspace = LocalWorkspace(directory, read_only=["data.csv"], use_bubblewrap=False, state=tmp_path / "run")
    yield workspace
    workspace.close()


@pytest.fixture
def act(workspace: LocalWorkspace) -> ActionRunner:
    return action_runner(workspace)


def test_actions_are_those_of_mlagentbench(workspace: LocalWorkspace) -> None:
    assert list(actions_for(workspace)) == [
        *(
            "List Files",
            "Read File",
            "Write File",
            "Append File",
            "Copy File",
            "Inspect Script Lines",
            "Undo Edit Script",
        ),
        *("Execute Script", "Understand File", "Edit Script", "Edit Script Segment", "Final Answer"),
    ]
    for name in ("edit_script", "Edit Script (AI)", "**edit script**", "`Edit-Script`"):
        assert find(name) is ACTIONS["Edit Script"]
    assert find("Edit") is None
    assert ACTIONS["Edit Script Segment"].tool_name == "edit_script_segment"


def test_file_actions(act: ActionRunner, directory: Path) -> None:
    (directory / "data.csv").write_text("1,2")
    (directory / "sub").mkdir()
    assert act("List Files") == "data.csv  3 bytes  (read-only)\nsub/\ntrain.py  89 bytes"
    assert act("List Files", directory="sub") == "sub is empty."
    act("Write File", filename="sub/a\nfake  3 bytes", content="x")
    assert act("List Files", directory="sub") == "a\\nfake  3 bytes  1 bytes"
    assert act("Read File", filename="train.py") == SCRIPT
    assert act("Write File", filename="new/a.txt", content="one\ntwo") == "Wrote new/a.txt: 7 bytes, 2 lines."
    assert (
        act("Append File", filename="new/a.txt", content="\nthree")
        == "Appended 6 bytes to new/a.txt, which now has 13."
    )
    assert act("Append File", filename="b.txt", content="x") == "Appended 1 bytes to b.txt, which now has 1."
    assert act("Copy File", source="new/a.txt", destination="c.txt") == "Copied new/a.txt to c.txt."
    assert (directory / "c.txt").read_text() == "one\ntwo\nthree"
    with pytest.raises(WorkspaceError, match="are the same file"):
        act("Copy File", source="c.txt", destination="./c.txt")
    with pytest.raises(WorkspaceError, match="none does not exist"):
        act("Copy File", source="none", destination="c.txt")


def test_append_keeps_bytes_that_are_not_utf_8(act: ActionRunner, directory: Path) -> None:
    (directory / "latin").write_bytes(b"caf\xe9\r\n")
    act("Append File", filename="latin", content="\u00e9\n")
    assert (directory / "latin").read_bytes() == b"caf\xe9\r\n\xc3\xa9\n"


def test_long_file_is_truncated_with_a_hint(act: ActionRunner, directory: Path) -> None:
    (directory / "long").write_text("".join(f"line {number}\n" for number in range(9000)))
    shown = act("Read File", filename="long")
    assert "left out; 9000 lines in all; use Inspect Script Lines or Understand File" in shown
    assert shown.endswith("line 8999\n")
    assert len(shown) < 20_300


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (1, 1, "train.py has 8 lines. Lines 1 to 1:\nimport os"),
        (7, 99, "train.py has 8 lines. Lines 7 to 8:\n    for epoch in range(epochs):\n        print(epoch)"),
        (-5, 1, "train.py has 8 lines. Lines 1 to 1:\nimport os"),
        (5, 2, "train.py has 8 lines; there are none from 5 to 2, since the range is reversed."),
        (9, 9, "train.py has 8 lines, and line 9 is after its end."),
    ],
)
def test_inspect_script_lines(act: ActionRunner, start: int, end: int, expected: str) -> None:
    assert act("Inspect Script Lines", filename="train.py", start_line_number=start, end_line_number=end) == expected


def test_inspect_is_limited_to_101_lines(act: ActionRunner) -> None:
    act("Inspect Script Lines", filename="train.py", start_line_number=1, end_line_number=101)
    with pytest.raises(WorkspaceError, match="lines 1 to 102 are 102; at most 101"):
        act("Inspect Script Lines", filename="train.py", start_line_number=1, end_line_number=102)


def test_execute_script(act: ActionRunner, directory: Path) -> None:
    (directory / "run.py").write_text("import sys\nprint(sys.argv[1:])\nprint('bad', file=sys.stderr)\nsys.exit(2)\n")
    observation = act("Execute Script", filename="run.py", arguments=["--n", "1 2"])
    assert observation.startswith("Exit status 2, after ")
    assert observation.endswith("stdout:\n['--n', '1 2']\nstderr:\nbad")
    (directory / "sleep.sh").write_text("sleep 60\n")
    assert "Stopped at its time limit" in act("Execute Script", filename="sleep.sh", time_limit_s=0.3)
    with pytest.raises(WorkspaceError, match=r"none.py does not exist"):
        act("Execute Script", filename="none.py")
    act.context.seconds_left = lambda: 0.3
    assert "Stopped at its time limit" in act("Execute Script", filename="sleep.sh")
    act.context.seconds_left = lambda: -1.0
    with pytest.raises(WorkspaceError, match="no time left"):
        act("Execute Script", filename="sleep.sh")


def test_execute_names_the_file_with_the_whole_output(directory: Path, tmp_path: Path) -> None:
    workspace = LocalWorkspace(directory, output_limit=500, use_bubblewrap=False, state=tmp_path / "run")
    (directory / "run.py").write_text("for i in range(1000): print(i)\n")
    observation = action_runner(workspace)("Execute Script", filename="run.py")
    assert "All of the output is in .mlab-agent/outputs/1.txt." in observation
    assert "bytes left out" in observation
    workspace.close()


def test_final_answer_and_missing_score(act: ActionRunner, directory: Path) -> None:
    with pytest.raises(WorkspaceError, match="there are no scores here"):
        act("Score")
    assert act("Final Answer", final_answer="it is 4: four") == "The answer was submitted."
    assert (directory / "submission.txt").read_text() == "it is 4: four"


def test_undo_reverts_every_kind_of_write(act: ActionRunner, directory: Path) -> None:
    act.model.replies = [whole(SCRIPT.replace("10", "20").rstrip()), whole(SCRIPT.replace("10", "30").rstrip())]
    act("Write File", filename="a.py", content="1")
    act("Append File", filename="./a.py", content="2")
    act("Copy File", source="train.py", destination="a.py")
    act("Edit Script", filename="train.py", edit_instruction="20 epochs", save_filename="a.py")
    act("Edit Script", filename="train.py", edit_instruction="30 epochs", save_filename="sub/../a.py")
    states = []
    for _undo in range(5):
        states.append((directory / "a.py").read_text())
        observation = act("Undo Edit Script", filename="a.py")
    assert states == [SCRIPT.replace("10", "30"), SCRIPT.replace("10", "20"), SCRIPT, "12", "1"]
    assert observation == "Undone: a.py did not exist before the last write and was removed."
    assert not (directory / "a.py").exists()
    with pytest.raises(WorkspaceError, match=r"a.py: there is no write to undo"):
        act("Undo Edit Script", filename="a.py")
    assert (directory / "train.py").read_text() == SCRIPT


def test_undo_matches_whole_names(act: ActionRunner, directory: Path) -> None:
    act("Write File", filename="a_b", content="1")
    with pytest.raises(WorkspaceError, match="no write to undo"):
        act("Undo Edit Script", filename="a")
    assert (directory / "a_b").exists()


def test_no_action_changes_a_read_only_file(act: ActionRunner, directory: Path) -> None:
    act("Write File", filename="other", content="1")
    (directory / "data.csv").write_text("truth")
    (directory / "alias").symlink_to("data.csv")
    act.context.emit("write", path="data.csv", before=act.context.workspace.store.put(b"forged"))
    for path in ("data.csv", "./data.csv", "alias", "sub/../data.csv"):
        attempts: list[Callable[[], str]] = [
            lambda path=path: act("Write File", filename=path, content="no"),  # type: ignore[misc]
            lambda path=path: act("Append File", filename=path, content="no"),  # type: ignore[misc]
            lambda path=path: act("Copy File", source="other", destination=path),  # type: ignore[misc]
            lambda path=path: act("Undo Edit Script", filename=path),  # type: ignore[misc]
            lambda path=path: act("Edit Script", filename="train.py", edit_instruction="x", save_filename=path),  # type: ignore[misc]
            lambda path=path: act(  # type: ignore[misc]
                "Edit Script Segment", filename=path, start_line_number=1, end_line_number=1, edit_instruction="x",
                save_filename=path,
            ),
        ]  # fmt: skip
        for attempt in attempts:
            with pytest.raises(WorkspaceError, match="is read-only"):
                attempt()
    (directory / "spoil.sh").write_text("echo no > data.csv\n")
    assert (directory / "data.csv").read_text() == "truth"


def test_edit_returns_a_diff(act: ActionRunner, directory: Path) -> None:
    act.model.replies = [whole(SCRIPT.replace("10", "20").rstrip("\n"))]
    observation = act("Edit Script", filename="train.py", edit_instruction="change epoch to 20", save_filename="b.py")
    assert observation == (
        "Saved b.py. The difference to train.py:\n--- train.py\n+++ b.py\n@@ -1,6 +1,6 @@\n import os\n \n"
        "-epochs = 10\n+epochs = 20\n \n \n def run():\n"
    )
    assert (directory / "b.py").read_text() == SCRIPT.replace("10", "20")
    assert "change epoch to 20" in act.model.prompts[0]


def test_edit_creates_a_missing_script(act: ActionRunner, directory: Path) -> None:
    act.model.replies = [whole("print(1)")]
    act("Edit Script", filename="new.py", edit_instruction="print 1", save_filename="sub/new.py")
    assert (directory / "sub" / "new.py").read_text() == "print(1)\n"
    assert not (directory / "new.py").exists()


FENCED = "```python\nx = 1\n```"
INNER = 'doc = """\n```\ncode\n```\n"""\n'


@pytest.mark.parametrize(
    ("reply", "new"),
    [
        (FENCED, "x = 1\n"),
        (f"Sure!\n\n{FENCED}\n", "x = 1\n"),
        (whole(INNER.rstrip("\n")), INNER),
        (whole(f"```python\n{INNER}```"), INNER),
        (whole("x = 1\r\n"), "x = 1\n"),
    ],
)
def test_complete_edit_replies(act: ActionRunner, directory: Path, reply: str | Callable[[str], str], new: str) -> None:
    act.model.replies = [reply]
    act("Edit Script", filename="train.py", edit_instruction="x", save_filename="train.py")
    assert (directory / "train.py").read_text().rstrip("\n") == new.rstrip("\n")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```python\nimport os\n", "neither the marker lines nor exactly one code block"),
        (f"```python\n{INNER}```\n", "neither the marker lines nor exactly one code block"),
        (f"{FENCED}\nand then\n{FENCED}", "neither the marker lines nor exactly one code block"),
        (f"{FENCED}\nI left the rest as it is.", "neither the marker lines nor exactly one code block"),
        ("I cannot do that.", "neither the marker lines"),
        ("", "neither the marker lines"),
        ("CUT", "token limit"),
        (lambda prompt: f"{marker(prompt)} WHOLE\nimport os\n", "its marker lines are WHOLE"),
        (whole("import os\n# ... rest of the code unchanged ..."), "it leaves something out"),
        (whole(""), "the new text is empty"),
    ],
)
def test_incomplete_edit_reply_writes_nothing(
    act: ActionRunner, directory: Path, reply: str | Callable[[str], str], reason: str
) -> None:
    act.model.replies = [reply, reply]
    with pytest.raises(WorkspaceError, match="was not edited") as caught:
        act("Edit Script", filename="train.py", edit_instruction="x", save_filename="train.py")
    assert reason in str(caught.value)
    assert (directory / "train.py").read_text() == SCRIPT
    assert reason in act.model.prompts[1]
    with pytest.raises(WorkspaceError, match="no write to undo"):
        act("Undo Edit Script", filename="train.py")


def test_edit_is_retried_once(act: ActionRunner, directory: Path) -> None:
    act.model.replies = ["CUT", whole(SCRIPT.replace("os", "sys"))]
    act("Edit Script", filename="train.py", edit_instruction="x", save_filename="train.py")
    assert (directory / "train.py").read_text().startswith("import sys\n")


def test_edit_keeps_windows_line_ends(act: ActionRunner, directory: Path) -> None:
    (directory / "t.py").write_bytes(b"a = 1\r\nb = 2\r\n")
    act.model.replies = [whole("a = 4\nb = 2")]
    act("Edit Script", filename="t.py", edit_instruction="x", save_filename="t.py")
    assert (directory / "t.py").read_bytes() == b"a = 4\r\nb = 2\r\n"


@pytest.mark.parametrize(
    ("start", "end", "segment", "reply", "new"),
    [
        (7, 8, LOOP, "    return 1", SCRIPT.replace(LOOP, "    return 1\n")),
        (1, 1, "import os\n", "import sys", SCRIPT.replace("os", "sys", 1)),
        (3, 3, "epochs = 10\n", "epochs = 20\nlr = 1", SCRIPT.replace("epochs = 10", "epochs = 20\nlr = 1")),
        (0, 999, SCRIPT, "x = 1", "x = 1\n"),
    ],
)  # fmt: skip
def test_edit_segment(
    act: ActionRunner, directory: Path, *, start: int, end: int, segment: str, reply: str, new: str
) -> None:
    act.model.replies = [whole(reply)]
    observation = act(
        "Edit Script Segment", filename="train.py", start_line_number=start, end_line_number=end, edit_instruction="x",
        save_filename="train.py",
    )  # fmt: skip
    assert f"TEXT\n{segment}{marker(act.model.prompts[0])} END" in act.model.prompts[0]
    assert (directory / "train.py").read_text() == new
    assert "--- train.py\n+++ train.py\n@@ -1" in observation or "@@ -" in observation


@pytest.mark.parametrize(("start", "end"), [(5, 4), (9, 9), (20, 30)])
def test_invalid_segment(act: ActionRunner, start: int, end: int) -> None:
    with pytest.raises(WorkspaceError, match="are no segment of"):
        act(
            "Edit Script Segment", filename="train.py", start_line_number=start, end_line_number=end,
            edit_instruction="x", save_filename="train.py",
        )  # fmt: skip


def test_edit_refuses_binary_and_long_files(act: ActionRunner, directory: Path) -> None:
    (directory / "latin.py").write_bytes(b"# caf\xe9\n")
    with pytest.raises(WorkspaceError, match="is not UTF-8 text"):
        act("Edit Script", filename="latin.py", edit_instruction="x", save_filename="latin.py")
    (directory / "long.py").write_text("x = 1\n" * 50_000)
    with pytest.raises(WorkspaceError, match="edit a segment with fewer lines"):
        act("Edit Script", filename="long.py", edit_instruction="x", save_filename="long.py")


def test_understand_file_reads_a_whole_short_file(act: ActionRunner) -> None:
    act.model.replies = ["It has 10 epochs (line 3)."]
    observation = act("Understand File", filename="train.py", query="the number of epochs")
    assert observation == "It has 10 epochs (line 3).\n[train.py has 8 lines; all of it was read]"
    assert SCRIPT.rstrip() in act.model.prompts[0]
    assert "the number of epochs" in act.model.prompts[0]


def long_text() -> str:
    lines = [f"def helper_{number}():\n    return {number} * unrelated_value" for number in range(3000)]
    lines[2000] = "def build_optimizer(model):\n    learningRate = 0.0173\n    return AdamW(model, learningRate)"
    return "\n".join(lines)


def test_understand_file_retrieves_relevant_passages(act: ActionRunner, directory: Path) -> None:
    (directory / "long.py").write_text(long_text())
    act.model.replies = ["It is 0.0173."]
    observation = act("Understand File", filename="long.py", query="What learning rate does the optimizer have?")
    assert "learningRate = 0.0173" in act.model.prompts[0]
    assert len(act.model.prompts[0]) < 40_000
    assert "[long.py has 6001 lines; read: lines " in observation


def test_observations_are_truncated(workspace: LocalWorkspace, directory: Path) -> None:
    (directory / "long").write_text("word " * 10_000)
    for number in range(600):
        (directory / f"file-{number:03}").touch()
    act = action_runner(workspace, "answer " * 5000, limits=Limits(observation_chars=1000))
    assert len(act("List Files")) < 1200
    assert len(act("Read File", filename="long")) < 1200
    assert len(act("Understand File", filename="long", query="word")) < 1200
