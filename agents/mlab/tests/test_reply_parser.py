"""Replies as models write them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlab_agent.actions import ACTIONS
from mlab_agent.lenient_json import JsonError, read_object
from mlab_agent.reply_parser import FIELDS, MalformedReply, Parsed, parse, parse_fields, parse_input, plain

TEXTS = "Reflection: r\nResearch Plan and Status: p\n**new**\nFact Check: f\nThought: t\n"


def one(action: str, arguments: object) -> str:
    return (
        f"{TEXTS}Action: {action}\nAction Input: {arguments if isinstance(arguments, str) else json.dumps(arguments)}\n"
    )


def refused(reply: str) -> str:
    with pytest.raises(MalformedReply) as caught:
        parse(reply)
    return caught.value.text


def test_a_reply_as_it_should_be() -> None:
    parsed = parse(one("Write File", {"filename": "a.py", "content": "x = 1\n"}))
    fields = {"Reflection": "r", "Research Plan and Status": "p\n**new**", "Fact Check": "f", "Thought": "t"}
    assert parsed == Parsed(fields, "Write File", {"filename": "a.py", "content": "x = 1\n"})
    assert plain(parsed.fields["Research Plan and Status"]) == "p\nnew"
    assert FIELDS[-2:] == ("Action", "Action Input")


@pytest.mark.parametrize("action", ACTIONS.values(), ids=lambda action: action.name)
def test_every_action_by_its_arguments_and_by_those_of_mlagentbench(action) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    values = {"string": "text", "integer": 3, "number": 2.5, "strings": ["a"]}
    whole = {argument.name: values[argument.kind] for argument in action.arguments}
    assert parse(one(action.name, whole)).input == whole
    also = {(argument.aliases or (argument.name,))[0]: values[argument.kind] for argument in action.arguments}
    assert parse(one(f"{action.name} (AI)", also)).input == whole
    assert parse(one(action.name, dict(reversed(whole.items())))).input == whole
    assert set(action.schema["required"]) <= set(whole)


ROUNDS = (
    one("List Files", {"directory": "."}) + "Observation:\n```\na.py\n```\n" + one("Read File", {"filename": "a.py"})
)


def test_the_first_action_wins_and_a_made_up_observation_is_dropped() -> None:
    parsed = parse(ROUNDS)
    assert (parsed.action, parsed.input) == ("List Files", {"directory": "."})
    assert parsed.fields["Reflection"] == "r"
    assert parsed.notes == ("An Observation that you wrote yourself, and all after it, was dropped.",)


def test_the_first_action_wins_without_an_observation_between() -> None:
    parsed = parse(one("List Files", {}) + one("Final Answer", {"final_answer": "x"}))
    assert parsed.action == "List Files"
    assert "Only the first action was taken" in parsed.notes[0]


def test_an_action_without_input_is_not_argumentsthe_input_of_the_next() -> None:
    reply = f"{TEXTS}Action: Read File\nObservation: x\nAction: Write File\nAction Input: {{}}"
    assert 'After "Action: Read File" there is no "Action Input:"' in refused(reply)
    reply = f'{TEXTS}Action: Read File\nAction: Write File\nAction Input: {{"filename": "a"}}'
    assert 'After "Action: Read File" there is no "Action Input:"' in refused(reply)


def test_field_names_in_the_content_split_nothing() -> None:
    content = "Action Input: {}\nObservation: no\nAction: List Files\nThought: x\n```\n"
    parsed = parse(one("Write File", {"filename": "a", "content": content}))
    assert parsed.input["content"] == content
    raw = one("Write File", '{"filename": "a", "content": "' + content.replace('"', '\\"') + '"}')
    assert parse(raw).input["content"] == content  # also where line breaks are not escaped


def test_field_names_in_a_thought_split_nothing() -> None:
    reply = one("List Files", {}).replace(
        "Thought: t", "Thought: my next Action Input: is\n- Action: to train it\nand more"
    )
    assert parse(reply).fields["Thought"] == "my next Action Input: is\n- Action: to train it\nand more"
    assert parse(reply).action == "List Files"


@pytest.mark.parametrize(
    ("input_", "expected", "note"),
    [
        ('```json\n{"filename": "a.py"}\n```', "a.py", ""),
        ('```\n{"filename": "a.py"}\n```\nDone!', "a.py", "Only the first action"),
        ('{"filename": "a.py",}', "a.py", "trailing comma"),
        ("{'filename': 'a.py'}", "a.py", "read as one between double quotes"),
        ("{\u201cfilename\u201d: \u201ca.py\u201d}", "a.py", "read as one between double quotes"),
        ('{"filename": """a.py"""}', "a.py", "read as one between double quotes"),
        ('Here is it: {"filename": "a.py"} as you see', "a.py", "Only the first action"),
        ('{"Filename": "a.py"}', "a.py", ""),
        ('{"script_name": "a\\/b.py"}', "a/b.py", ""),
        ('{"filename": "a\nb"}', "a\nb", "a line break in a string"),
        (r'{"filename": "\d+"}', r"\d+", "the backslash"),
        ("a.py", "a.py", "no JSON object"),
        ('"a.py"', "a.py", "no JSON object"),
        ('{"filename": 7}', "7", ""),
    ],
)
def test_what_is_repaired(input_: str, expected: str, note: str) -> None:
    parsed = parse(one("Read File", input_))
    assert parsed.input == {"filename": expected}
    assert note in " ".join(parsed.notes)
    assert bool(note) == bool(parsed.notes)


@pytest.mark.parametrize(
    ("input_", "message"),
    [
        (
            '{"filename": "a"b.py"}',
            "line 1, column 17 of the input: a comma or } was expected, not 'b.py\"}' (a double quote",
        ),
        ('{"filename": "a.py"', "has no end; was the reply cut off?"),
        ('{"filename": "a.p', "the string '\"a.p' has no end; was the reply cut off?"),
        ('{"filename" "a.py"}', 'a colon was expected after "filename"'),
        ("{filename: 1}", "a name in double quotes was expected"),
        ('{"filename": "a", "filename": "b"}', '"filename" is given twice'),
        ('{"filename": "a", "file_name": "b"}', '"filename" is given twice'),
        ('{"filename": "a", "colour": "b"}', 'Read File has no argument "colour"; its arguments: "filename"'),
        ("{}", 'Read File needs "filename", which is missing'),
        ("", 'Read File needs "filename", which is missing'),
        ('{"filename": ["a"]}', '"filename" must be a string, not ["a"]'),
        ('{"filename": true}', '"filename" must be a string, not true'),
        ('{"filename": null}', '"filename" must be a string, not null'),
        ('["a.py"]', "the input must be a JSON object"),
        ("a.py\nb.py", "the input must be a JSON object"),
        ('{"filename": "\\ud800"}', "half of a character"),
        ('{"filename": ' + "[" * 100, "nested too deeply"),
    ],
)
def test_what_is_answered_with_what_was_wrong_and_the_usage(input_: str, message: str) -> None:
    text = refused(one("Read File", input_))
    assert message in text
    assert 'Usage:\nAction: Read File\nAction Input: {\n    "filename": [' in text


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "The reply was empty."),
        (" \n", "The reply was empty."),
        ("I will now train the model.", 'no line that begins with "Action:"'),
        (TEXTS, 'no line that begins with "Action:"'),
        ("Observation: x\n" + one("List Files", {}), 'no "Action:" before the Observation'),
        (one("Train Model", {}), "There is no action 'Train Model'. The actions are: List Files, Read File"),
        (one("", {}), "There is no action 'nothing'"),
        (f'{TEXTS}Action Input: {{"filename": "a"}}', 'no line that begins with "Action:"'),
        (f"{TEXTS}Action: Read File", 'After "Action: Read File" there is no "Action Input:"'),
    ],
)
def test_replies_without_an_action(reply: str, message: str) -> None:
    assert message in refused(reply)
    assert "Usage:" in refused(reply) or "these fields, in this order:\nReflection: ..." in refused(reply)


def test_a_malformed_reply_still_tells_its_fields() -> None:
    with pytest.raises(MalformedReply) as caught:
        parse(one("Train Model", {}))
    assert caught.value.fields["Thought"] == "t"


@pytest.mark.parametrize(
    "reply",
    [
        'Action: Read File\nAction Input: {"filename": "a.py"}',
        '**Action:** Read File\n**Action Input:** {"filename": "a.py"}',
        '## Action: `read_file`\n## Action Input:\n```json\n{"filename": "a.py"}\n```',
        'action: READ FILE.\naction input: {"filename": "a.py"}',
        'Action Input: {"filename": "a.py"}\nAction: Read File',
        'Action: Read File {"filename": "a.py"}',
        'Action: Read File\n```json\n{"filename": "a.py"}\n```',
        '```\nAction: Read File\nAction Input: {"filename": "a.py"}\n```',
        'Action: Read File\r\nAction Input: {"filename": "a.py"}\r\n',
        'Action:\nRead File\nAction Input:\n{"filename": "a.py"}',
    ],
)
def test_other_ways_to_write_an_action(reply: str) -> None:
    parsed = parse(reply)
    assert (parsed.action, parsed.input) == ("Read File", {"filename": "a.py"})
    assert parsed.notes == (
        "The reply had no Reflection and no Research Plan and Status and no Fact Check and no Thought.",
    )


def test_fields_in_another_order_are_kept() -> None:
    reply = 'Action: Read File\nAction Input: {"filename": "a"}\nThought: later\nReflection: r'
    assert parse(reply).fields == {"Thought": "later", "Reflection": "r"}


def test_arguments_of_native_tool_calls() -> None:
    action = ACTIONS["Execute Script"]
    arguments, notes = parse_input(action, '{"filename": "a.py", "arguments": "--n 1 \'x y\'", "time_limit_s": "30"}')
    assert arguments == {"filename": "a.py", "arguments": ["--n", "1", "x y"], "time_limit_s": 30.0}
    assert notes == ()
    with pytest.raises(MalformedReply, match='"time_limit_s" must be a number above 0, not -1'):
        parse_input(action, '{"filename": "a.py", "time_limit_s": -1}')
    assert parse_input(ACTIONS["Score"], "")[0] == {}
    assert parse_fields("Reflection: r\nThought: t\nmore\nAction: x") == {"Reflection": "r", "Thought": "t\nmore"}
    assert parse_fields("just words") == {}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5), st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_is_read_as_json_has_it(value: dict[str, object], ascii_: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent)
    if "\u201c" in text.replace("\\", ""):
        return
    assert read_object(text + " and more") == (value, len(text), [])


@pytest.mark.timeout(10)
def test_a_long_string_that_was_cut_off_is_refused_at_once() -> None:
    with pytest.raises(JsonError, match="has no end; was the reply cut off"):
        read_object('{"content": "' + 'print(\\"x\\")\n' * 20_000)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value, end, _notes = read_object("{" + text)
    except JsonError as error:
        assert re.search(r"line \d+, column \d+", str(error))  # noqa: PT017 - either may come
    else:
        assert isinstance(value, dict)
        assert 0 < end <= len(text) + 1


PIECES = [
    *(f"{name}: " for name in FIELDS),
    "Observation: ",
    "Read File",
    "{",
    "}",
    '"filename"',
    ":",
    '"a',
    '"',
    "\n",
    "```",
    ",",
    "x",
]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    try:
        parsed = parse(reply)
    except MalformedReply:
        pass
    else:
        assert parsed.action in ACTIONS
        first = re.search(r"^[ ]*Observation: ", reply, re.MULTILINE)
        action = reply.find("Action: ")
        assert first is None or action >= 0


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=200), st.text(max_size=50))
def test_content_comes_through_whole(content: str, after: str) -> None:
    reply = one("Write File", {"filename": "a", "content": content}) + after
    assert parse(reply).input == {"filename": "a", "content": content}
