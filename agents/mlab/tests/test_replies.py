"""Parsing of replies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlab_agent.actions import ACTIONS, Action
from mlab_agent.models import Reply, ToolCall
from mlab_agent.replies import FIELDS, Response, plain, read_response, without_thoughts

CALL = '{"name": "read_file", "arguments": {"filename": "a.py"}}'
TEXTS = "Reflection: r\nResearch Plan and Status: p\n**new**\nFact Check: f\nThought: t\n"


def one(action: str, arguments: object) -> str:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return f"{TEXTS}Action: {action}\nAction Input: {written}\n"


def read(text: str, call: ToolCall | None = None) -> Response:
    return read_response(Reply(text, call, truncated=False, prompt_tokens=1, completion_tokens=1, dollars=None))


def test_reply_in_mlagentbench_format() -> None:
    response = read(one("Write File", {"filename": "a.py", "content": "x = 1\n"}))
    assert response.fields == {
        "Reflection": "r", "Research Plan and Status": "p\n**new**", "Fact Check": "f", "Thought": "t",
    }  # fmt: skip
    assert (response.action, response.input) == ("Write File", {"filename": "a.py", "content": "x = 1\n"})
    assert response.notes == ()
    assert plain(response.fields["Research Plan and Status"]) == "p\nnew"
    assert FIELDS[-2:] == ("Action", "Action Input")


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda action: action.name)
def test_argument_names_of_mlagentbench(action: Action) -> None:
    values = {"string": "text", "integer": 3, "number": 2.5, "array": ["a"]}
    whole = {name: values[kind["type"]] for name, kind in action.schema["properties"].items()}
    assert read(one(action.name, whole)).input == whole
    also = {action.aliases(name)[0]: value for name, value in whole.items()}
    assert read(one(f"{action.name} (AI)", also)).input == whole
    assert set(action.schema["required"]) <= set(whole)


def test_first_action_wins_and_invented_observation_is_dropped() -> None:
    response = read(
        one("List Files", {"directory": "."}) + "Observation:\n```\na.py\n```\n" + one("Read File", {"filename": "a"})
    )
    assert (response.action, response.input) == ("List Files", {"directory": "."})
    assert response.notes == ("An Observation that you wrote yourself, and all after it, was dropped.",)
    response = read(one("List Files", {}) + one("Final Answer", {"final_answer": "x"}))
    assert response.action == "List Files"
    assert "Only the first action was taken" in response.notes[0]


def test_action_does_not_get_the_next_input() -> None:
    for between in ("Observation: x\n", ""):
        reply = f'{TEXTS}Action: Read File\n{between}Action: Write File\nAction Input: {{"filename": "a"}}'
        assert 'there is no "Action Input:"' in read(reply).complaint


def test_field_names_inside_text_are_ignored() -> None:
    content = "Action Input: {}\nObservation: no\nAction: List Files\nThought: x\n```\n"
    assert read(one("Write File", {"filename": "a", "content": content})).input["content"] == content
    raw = one("Write File", '{"filename": "a", "content": "' + content + '"}')
    assert read(raw).input["content"] == content  # also where line breaks are not escaped
    reply = one("List Files", {}).replace("Thought: t", "Thought: my next Action Input: is\n- Action: to train it")
    assert read(reply).action == "List Files"


@pytest.mark.parametrize(
    ("input_", "expected", "note"),
    [
        ('```json\n{"filename": "a.py"}\n```', "a.py", ""),
        ('```\n{"filename": "a.py"}\n```\nDone!', "a.py", "Only the first action"),
        ('{"filename": "a.py",}', "a.py", "was repaired"),
        ("{'filename': 'a.py'}", "a.py", "was repaired"),
        ("{\u201cfilename\u201d: \u201ca.py\u201d}", "a.py", "was repaired"),
        ('{"filename" "a.py"}', "a.py", "was repaired"),
        ('{"filename": "a.py" // the script\n}', "a.py", "was repaired"),
        ('Here is it: {"filename": "a.py"} as you see', "a.py", "Only the first action"),
        ('{"Filename": "a.py"}', "a.py", ""),
        ('{"script_name": "a\\/b.py"}', "a/b.py", ""),
        ('{"filename": "a\nb"}', "a\nb", ""),
        (r'{"filename": "\d+"}', r"\d+", "was repaired"),
        ('{"filename": 7}', "7", ""),
    ],
)
def test_repaired_json(input_: str, expected: str, note: str) -> None:
    response = read(one("Read File", input_))
    assert response.input == {"filename": expected}, response.complaint
    assert note in " ".join(response.notes)
    assert bool(note) == bool(response.notes)


@pytest.mark.parametrize(
    ("input_", "message"),
    [
        ('{"filename": "a.py"', "it has no end: was the reply cut off?"),
        ('{"filename": "a.p', "it has no end: was the reply cut off?"),
        ('{"filename": "a} half of a file', "it has no end: was the reply cut off?"),
        ('{"filename": "a", "file_name": "b"}', '"filename" is given twice'),
        ('{"filename": "a", "colour": "b"}', 'Read File has no argument "colour"; its arguments: "filename"'),
        ("{}", 'Read File needs "filename", which is missing'),
        ("", 'Read File needs "filename", which is missing'),
        ('{"filename": ["a"]}', '"filename": Input should be a valid string, not ["a"]'),
        ('{"filename": true}', '"filename": Input should be a valid string, not true'),
        ('{"filename": null}', '"filename": Input should be a valid string, not null'),
        ('["a.py"]', "the input must be a JSON object"),
        ("a.py", "the input must be a JSON object"),
        ('{"filename": "\\ud800"}', "half of a character"),
    ],
)
def test_error_message_has_the_usage(input_: str, message: str) -> None:
    response = read(one("Read File", input_))
    assert response.action is None
    assert message in response.complaint
    assert 'Usage:\nAction: Read File\nAction Input: {\n    "filename": [' in response.complaint
    assert response.fields["Thought"] == "t"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "The reply was empty."),
        ("I will now train the model.", 'no line that begins with "Action:"'),
        (TEXTS, 'no line that begins with "Action:"'),
        ("Observation: x\n" + one("List Files", {}), 'no line that begins with "Action:"'),
        (one("Train Model", {}), "There is no action 'Train Model'. The actions are: List Files, Read File"),
        (f'{TEXTS}Action Input: {{"filename": "a"}}', 'no line that begins with "Action:"'),
        (f"{TEXTS}Action: Read File", 'there is no "Action Input:"'),
    ],
)
def test_replies_without_an_action(reply: str, message: str) -> None:
    complaint = read(reply).complaint
    assert message in complaint
    assert "Usage:" in complaint or "these fields, in this order:\nReflection: ..." in complaint


@pytest.mark.parametrize(
    "reply",
    [
        'Action: Read File\nAction Input: {"filename": "a.py"}',
        '**Action:** Read File\n**Action Input:** {"filename": "a.py"}',
        '## Action: `read_file`\n## Action Input:\n```json\n{"filename": "a.py"}\n```',
        'action: READ FILE.\naction input: {"filename": "a.py"}',
        '```\nAction: Read File\nAction Input: {"filename": "a.py"}\n```',
        'Action: Read File\r\nAction Input: {"filename": "a.py"}\r\n',
        'Action:\nRead File\nAction Input:\n{"filename": "a.py"}',
    ],
)
def test_other_ways_to_write_an_action(reply: str) -> None:
    response = read(reply)
    assert (response.action, response.input) == ("Read File", {"filename": "a.py"}), response.complaint
    assert "The reply had no Thought." in response.notes


def test_native_tool_calls() -> None:
    call = ToolCall("execute_script", '{"filename": "a.py", "arguments": "--n 1 \'x y\'", "time_limit_s": "30"}')
    response = read("Reflection: r\nThought: t\nmore", call)
    assert response.fields == {"Reflection": "r", "Thought": "t\nmore"}
    assert response.input == {"filename": "a.py", "arguments": ["--n", "1", "x y"], "time_limit_s": 30.0}
    assert (response.tool, response.notes) == ("execute_script", ())
    wrong = read("", ToolCall("execute_script", '{"filename": "a.py", "time_limit_s": -1}'))
    assert '"time_limit_s": Input should be greater than 0, not -1' in wrong.complaint
    assert read("", ToolCall("score", "")).action == "Score"
    assert "There is no tool 'fly'" in read("", ToolCall("fly", "{}")).complaint


PIECES = [
    *(f"{name}: " for name in (*FIELDS, "Observation")),
    "Read File",
    "<tool_call>",
    "<think>",
    "(",
    ")",
    CALL,
    "{",
    "}",
    '"filename"',
    ":",
    '"a',
    '"',
]


@given(st.lists(st.sampled_from([*PIECES, "\n", "```", ",", "x"]), max_size=25).map("".join))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    response = read(reply)
    assert (response.action in ACTIONS) != bool(response.complaint)


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=200), st.text(max_size=50))
def test_content_round_trip(content: str, after: str) -> None:
    response = read(one("Write File", {"filename": "a", "content": content}) + after)
    assert response.input == {"filename": "a", "content": content}


LATER = 'Thought: t\nAction: Write File\nAction Input: {"filename": "b", "content": "c"}'


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (f"{TEXTS}<tool_call>\n{CALL}\n</tool_call>", ""),
        (f"{TEXTS}<tool_call>\n{CALL}", ""),  # without the end, at which some servers stop
        (f"{TEXTS}<tool_call>{CALL[:-2]},}}}}</tool_call>", "was repaired"),
        (f"{TEXTS}<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", "Only the first action"),
        (f"{TEXTS}<tool_call>{CALL}</tool_call>\nObservation: x\n{LATER}", "wrote yourself"),
        (f"{TEXTS}```json\n{CALL}\n```", ""),
        (f"{TEXTS}{CALL}", ""),
        (TEXTS + '```\n{"action": "Read File", "action_input": {"filename": "a.py"}}\n```', ""),
        (
            TEXTS + '{"type": "function", "function": {"name": "read_file", "arguments": "{\\"file\\": \\"a.py\\"}"}}',
            "",
        ),
        (f"{TEXTS}Action:\n```json\n{CALL}\n```", ""),
        (f'{TEXTS}Action: read_file(filename="a.py")', ""),
        (f"{TEXTS}Action: `Read File('a.py')`", ""),
        (f'{TEXTS}Action: read_file(file_name="a.py")\nAction Input: {{}}', "Only the first action"),
    ],
)
def test_calls_in_other_formats(reply: str, note: str) -> None:
    response = read(reply)
    assert (response.action, response.input) == ("Read File", {"filename": "a.py"}), response.complaint
    assert response.fields["Thought"] == "t"
    assert note in " ".join(response.notes)
    assert bool(note) == bool(response.notes)


def test_call_as_python_with_any_content() -> None:
    content = "print(1)\nThought: (x)\nAction: List Files\n"
    response = read(f'{TEXTS}Action: write_file(filename="a", content="""{content}""")')
    assert response.input == {"filename": "a", "content": content}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', "There is no action 'fly'"),
        ('<tool_call>{"name": "read_file"}</tool_call>', 'needs "name" and "arguments"'),
        ('<tool_call>{"name": "write_file", "arguments": {"filename": "a", "con', "was the reply cut off?"),
        ('<tool_call>{"name": "read_file", "arguments": {}}</tool_call>', 'Read File needs "filename"'),
        ("Action: read_file('a', 'b')", "there are too many arguments"),
        ("Action: read_file(open('a'))", 'no line that begins with "Action:"'),
        ('```json\n{"name": "Ada", "arguments": {"age": 3}}\n```', 'no line that begins with "Action:"'),
        ("Action: Read File\nAction Input:\nfilename: train.py", 'YAML ("filename: ..."); write a JSON object'),
        ("Action: Read File\nAction Input:\n```yaml\nscript_name: {a}\n```", 'YAML ("script_name: ...")'),
    ],
)
def test_calls_in_other_formats_that_are_refused(reply: str, message: str) -> None:
    response = read(reply)
    assert response.action is None
    assert message in response.complaint


def test_invented_results_after_the_action_are_dropped() -> None:
    """Replay a reply of qwen2.5-coder-1.5b, shortened."""
    reply = one("List Files", {"directory": "."}) + "Comes back: ['train.py', 'data.csv', 'model.pkl']\n" + LATER
    response = read(reply)
    assert (response.action, response.input) == ("List Files", {"directory": "."})
    assert response.notes == ("An Observation that you wrote yourself, and all after it, was dropped.",)


CONSIDERED = 'Action: Write File\nAction Input: {"filename": "a", "content": "b"}\nObservation: done\n'
ACTION = 'Thought: now\nAction: Final Answer\nAction Input: {"final_answer": "it is done"}'


@pytest.mark.parametrize(
    "thoughts",
    [
        f"<think>\nShall I?\n{CONSIDERED}No.\n</think>\n",
        f"  <think>{CONSIDERED}</think><think>again\n{CONSIDERED}</think>",
        f"Shall I?\n{CONSIDERED}No.\n</think>\n",
        "<think></think>",
        f"<thinking>{CONSIDERED}</thinking>\n",
        f"<Reasoning>\n{CONSIDERED}</reasoning>\n\n",
        f"{CONSIDERED}</thinking>",
        "<think><tool_call>{}</tool_call></think>",
    ],
)
def test_actions_that_are_only_considered_are_not_taken(thoughts: str) -> None:
    response = read(thoughts + ACTION)
    assert (response.action, response.input) == ("Final Answer", {"final_answer": "it is done"})
    assert response.text == ACTION


def test_thoughts_after_other_text_are_not_read() -> None:
    response = read(f"Reflection: r\n<think>\n{CONSIDERED}</think>\n{ACTION}")
    assert (response.action, response.fields) == ("Final Answer", {"Reflection": "r", "Thought": "now"})


@pytest.mark.parametrize("mark", ["<think>", "<thinking>", "<reasoning>", "Reflection: r\n<think>"])
def test_thoughts_that_were_cut_off_have_no_action(mark: str) -> None:
    response = read(f"{mark}\n{CONSIDERED}")
    assert response.action is None
    assert not response.tries_to_act
    assert ("had only thoughts" in response.complaint) == mark.startswith("<")


def test_marks_of_thoughts_in_an_input_stay() -> None:
    for content in ("<think>x</think> and </think>", "\n<think>\nx"):
        text = f'Action: Write File\nAction Input: {{"filename": "a", "content": "{content}"}}'
        assert read(text).input["content"] == content
    assert without_thoughts("WHOLE\n<think>x</think>\nDONE") == "WHOLE\n<think>x</think>\nDONE"
