"""Whatever ``answer.json`` is, it is an answer or refused with one line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from re_bench.errors import InvalidSubmissionError
from small_scaling_law.answer import Answer, read_answer
from small_scaling_law.grading import share_of_target
from small_scaling_law.profiles import SCALES

if TYPE_CHECKING:
    from pathlib import Path

GOOD = b'{"n_embd": 1000, "max_iters": 20000, "loss_prediction": 4.4}'


def changed(key: str, value: str) -> bytes:
    parts = {"n_embd": "1000", "max_iters": "20000", "loss_prediction": "4.4"} | {key: value}
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in parts.items()) + "}").encode()


# The cheats have more: a pipe, a link to the truth, a huge file, deep nesting, NaN, infinity.
BAD = {
    "empty": (b"", "answer.json is empty"),
    "list": (b"[1000, 20000, 4.4]", "must be one JSON object .*, got an array"),
    "no json": (b"n_embd = 1000", "is not JSON: Expecting value: line 1"),
    "half": (GOOD[:30], "is not JSON"),
    "brackets in a name": (b'{"' + b"[" * 60 + b'\\"": 1}', "has the key '\\[\\["),
    "long": (b" " * 5000 + GOOD, "has 5,060 bytes; three numbers need no more than 4,096"),
    "mark": (b"\xef\xbb\xbf" + GOOD, "begins with a byte-order mark"),
    "latin-1": (GOOD[:-1] + b', "\xe9": 1}', "is not UTF-8, at byte"),
    "lacks": (b'{"n_embd": 1000}', "lacks max_iters and loss_prediction"),
    "extra": (GOOD[:-1] + b', "flops": 1}', "has the key 'flops'"),
    "odd key": (GOOD[:-1] + b', "\\ud800\\u0000": 1}', r"has the key '\\ud800\\x00'"),
    "long key": (GOOD[:-1] + b', "' + b"k" * 900 + b'": 1}', r"has the key 'k{40}\.\.\.'"),
    "twice": (GOOD[:-1] + b', "n_embd": 8}', "has the key 'n_embd' twice"),
    "huge loss": (changed("loss_prediction", "1" * 999), "at most 1000 nats, got a number of 999 digits"),
    "negative loss": (changed("loss_prediction", "-1.5"), "loss_prediction must be above 0 .*, got -1.5"),
    "bool loss": (changed("loss_prediction", "true"), "loss_prediction must be a number, got true"),
    "bool": (changed("n_embd", "true"), "n_embd must be an integer, got true"),
    "float": (changed("max_iters", "1e3"), "max_iters must be an integer, got the number 1000.0; write it without"),
    "zero": (changed("n_embd", "0"), "n_embd must be from 1 to 1,000,000,000,000, got 0"),
}


def reason_for(path: Path) -> str:
    with pytest.raises(InvalidSubmissionError) as refusal:
        read_answer(path)
    return str(refusal.value)


def test_three_numbers_are_an_answer(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_bytes(b"\n " + GOOD + b"\r\n")
    assert read_answer(tmp_path / "answer.json") == Answer(1000, 20000, 4.4)
    (tmp_path / "answer.json").write_bytes(changed("loss_prediction", "4"))
    assert read_answer(tmp_path / "answer.json").loss_prediction == 4.0


@pytest.mark.parametrize("case", BAD)
def test_anything_else_is_refused_with_one_line(tmp_path: Path, case: str) -> None:
    content, reason = BAD[case]
    (tmp_path / "answer.json").write_bytes(content)
    message = reason_for(tmp_path / "answer.json")
    assert re.search(reason, message)
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((8, 88_914), r"spends 1\.074e\+14 FLOPs, under 0\.5 times the target of 5e\+17 \(0\.000215 of it\)"),
        ((1000, 32_000), r"spends 6\.04e\+17 FLOPs, over 1\.1 times the target"),
        ((10**12, 10**12), "over 1.1 times the target"),
    ],
)
def test_an_answer_off_the_budget_is_refused(answer: tuple[int, int], reason: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=reason):
        share_of_target(Answer(*answer, 3.7), SCALES["paper"])


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    assert "cannot be read: No such file" in reason_for(path)
    (tmp_path / "other.json").write_bytes(GOOD)
    path.symlink_to("other.json")
    assert "is a link" in reason_for(path)
    path.unlink()
    path.mkdir()
    assert "not a regular file" in reason_for(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n_embd", "x"]), inner, max_size=2),
    max_leaves=5,
)


@pytest.mark.integration
@settings(deadline=None, derandomize=True, database=None, max_examples=200)
@given(st.fixed_dictionaries(dict.fromkeys(("n_embd", "max_iters", "loss_prediction"), json_values)) | json_values)
def test_any_json_is_an_answer_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any-answer.json"
    path.write_text(json.dumps(value))
    try:
        answer = read_answer(path)
    except InvalidSubmissionError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - both outcomes are right
    else:
        assert vars(answer) == value
