"""Every action in a whole run, in the text format and with native tools."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion, ErrorResponse

from mlab_agent.actions import ACTIONS, SCORE, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration

ALL: list[tuple[str, dict[str, Any], str]] = [
    ("List Files", {"directory": "."}, "train.py"),
    ("Read File", {"filename": "train.py"}, "RATE = 0.1"),
    ("Write File", {"filename": "notes/a.txt", "content": "one\n"}, "Wrote notes/a.txt: 4 bytes"),
    ("Append File", {"filename": "notes/a.txt", "content": "two\n"}, "Appended 4 bytes"),
    ("Copy File", {"source": "notes/a.txt", "destination": "b.txt"}, "Copied notes/a.txt to b.txt"),
    (
        "Inspect Script Lines",
        {"filename": "train.py", "start_line_number": 3, "end_line_number": 3},
        "train.py has 4 lines. Lines 3 to 3:\nRATE = 0.1",
    ),
    ("Understand File", {"filename": "train.py", "query": "the rate"}, "The rate is 0.1."),
    (
        "Edit Script",
        {"filename": "train.py", "edit_instruction": "RATE = 0.1 -> RATE = 0.2", "save_filename": "train.py"},
        "-RATE = 0.1\n+RATE = 0.2",
    ),
    ("Execute Script", {"filename": "train.py", "arguments": ["--deep", "a b"]}, "loss 0.8 --deep a b"),
    (
        "Edit Script Segment",
        {
            "filename": "train.py",
            "start_line_number": 3,
            "end_line_number": 3,
            "edit_instruction": "RATE = 0.2 -> RATE = 0.5",
            "save_filename": "other.py",
        },
        "+RATE = 0.5",
    ),
    ("Undo Edit Script", {"filename": "train.py"}, "RATE = 0.1"),
    ("Execute Script", {"filename": "other.py"}, "Exit status 0"),
    ("Final Answer", {"final_answer": "0.5: it is best"}, ""),
]


def serve(prompt: str) -> str:
    """Play the model of the compound actions."""
    edit = re.search(r"^(EDIT-\w+) TEXT\n(.*)^\1 END", prompt, re.MULTILINE | re.DOTALL)
    if edit is None:
        return "The rate is 0.1."
    change = re.search(r"Instruction: (.*) -> (.*)", prompt)
    assert change
    return f"{edit[1]} WHOLE\n{edit[2].replace(change[1], change[2])}{edit[1]} DONE"


def test_every_action_is_covered() -> None:
    assert {name for name, _given, _seen in ALL} == {*ACTIONS} - {SCORE.name}


def check(agents: Agents) -> None:
    observations = agents.observations()
    assert len(observations) == len(ALL)
    for (name, _given, seen), observation in zip(ALL, observations, strict=True):
        assert seen in observation, name
        assert "[Budget left: " in observation
    assert agents.submission == "0.5: it is best"
    assert (agents.workspace / "b.txt").read_text() == "one\ntwo\n"
    assert "RATE = 0.1" in (agents.workspace / "train.py").read_text()
    assert "RATE = 0.5" in (agents.workspace / "other.py").read_text()


def test_every_action_in_the_text_format(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say(name, given) for name, given, _seen in ALL]
    agents.model.serve = serve
    done = agents.finish_program()
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.5: it is best\n"
    check(agents)
    assert "stop" in agents.server.requests[0]
    assert "tools" not in agents.server.requests[0]


def test_every_action_with_native_tools(agents: Agents) -> None:
    calls = []
    for name, given, _seen in ALL:
        action = find(name)
        assert action
        calls.append(Completion("Thought: go on", (action.tool_name, json.dumps(given))))
    agents.model.replies = calls
    agents.model.serve = serve
    done = agents.finish("--tools", "native")
    assert done.returncode == 0, done.stderr
    check(agents)
    last = agents.server.requests[-1]
    roles = [message["role"] for message in last["messages"]]
    assert roles[:2] == ["system", "user"]
    assert {"assistant", "tool"} == set(roles[2:])
    asked = [call["id"] for message in last["messages"] for call in message.get("tool_calls", ())]
    assert asked == [message["tool_call_id"] for message in last["messages"] if message["role"] == "tool"]
    names = {tool["function"]["name"] for tool in last["tools"]}
    assert "edit_script_segment" in names
    assert "score" not in names


def test_server_without_tools_gets_text_format(agents: Agents, say: Callable[..., str]) -> None:
    def answer(request: dict[str, Any]) -> str | ErrorResponse:
        if "tools" in request:
            agents.model.replies_given -= 1
            return ErrorResponse(400, "this model does not support tools", param="tools")
        return say("Final Answer", {"final_answer": "x"})

    agents.model.replies = [answer]
    done = agents.finish("--tools", "auto")
    assert done.returncode == 0, done.stderr
    assert agents.submission == "x"
    assert agents.events("dialect")[0]["basic"] is True


def test_text_action_is_accepted_in_native_mode(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("List Files", {"directory": "."}), say("Final Answer", {"final_answer": "x"})]
    assert agents.finish("--tools", "auto").returncode == 0
    assert "train.py" in agents.observations()[0]


def test_malformed_native_call_is_reported(agents: Agents) -> None:
    agents.model.replies = [
        Completion("", ("no_such_tool", "{}")),
        Completion("", ("read_file", "{bad")),
        Completion("", ("write_file", '{"filename": "a", "content": "half of'), truncated=True),
        Completion("no call at all"),
        Completion("", ("final_answer", '{"final_answer": "y"}')),
    ]
    assert agents.finish("--tools", "native").returncode == 0
    complaints = [event["text"] for event in agents.events("malformed")]
    assert len(complaints) == 4
    assert "no_such_tool" in complaints[0]
    assert "list_files" in complaints[0]
    assert "Read File" in complaints[1]
    assert "cut off" in complaints[2]
    assert "one tool" in complaints[3]
    assert not (agents.workspace / "a").exists()
    shown = json.dumps(agents.server.requests[-1]["messages"])
    assert "no call at all" in shown
    assert agents.submission == "y"
