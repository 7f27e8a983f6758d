"""Whether a program is the model's: what honest systems do passes, and what carries answers in does not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from rust_codecontests import pool
from rust_codecontests.answers import NOT_THE_MODELS, Answer
from rust_codecontests.judge import Judge
from rust_codecontests.model_calls import ModelCall
from rust_codecontests.origins import refuse_foreign
from rust_codecontests.provenance import REFUSED, WHOLE, Origin, Provenance
from rust_codecontests.rust_tokens import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PROBLEMS = [pool.read(directory) for directory in pool.directories(["test"])[:6]]
MODEL = [problem.flawed[0].source for problem in PROBLEMS]
"""What the model writes."""
TABLE = [problem.correct[0].source for problem in PROBLEMS]
"""What a submission carries."""
TEMPLATE = """use std::io::{self, Read};
// Reads all of the input.
fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    print!("{}", solve(&text));
}
"""
FUNCTIONS = [
    f"fn solve(s: &str) -> String {{\n let n: u32 = s.trim().parse().unwrap();\n    (n * {k} + n % 9).to_string()\n}}\n"
    for k in (3, 5, 7)
]


@dataclass
class Log:
    """Calls one after the other."""

    calls: list[ModelCall]

    def ask(self, answer: str, *prompts: str) -> Log:
        start = float(len(self.calls))
        self.calls.append(ModelCall(start, start + 0.5, prompts or ("Solve this in Rust.",), (answer,)))
        return self

    def origins(self, *sources: str) -> list[Origin]:
        return Provenance(self.calls).origins(sources)


@pytest.fixture
def log() -> Log:
    return Log([])


def fenced(source: str) -> str:
    return f"That's a 5\" program:\n\n```rust\n{source}```\nIt isn't slow."


def renamed(source: str) -> str:
    names = set(re.findall(r"\blet (?:mut )?(\w+)|\bfn (\w+)", source))
    for name in {one or other for one, other in names} - {"main"}:
        source = re.sub(rf"\b{name}\b", f"{name}_x", source)
    return source


# Honest systems


def test_what_stands_in_an_answer_is_the_model_s_whatever_its_dress(log: Log) -> None:
    for source in MODEL:
        log.ask(fenced(source))
    log.ask(f"You can do it so.\n\n{MODEL[0]}\nI hope it helps.").ask(f"```\n{MODEL[1]}")  # no fence; cut off
    without_layout = [re.sub(r"[ \t]*\n[ \t]*", "\n", re.sub(r"//[^\n]*", "", source)) for source in MODEL]
    imported = [f"#![allow(unused)]\nuse std::collections::{{HashMap, BTreeSet}};\n{source}" for source in MODEL]
    assert log.origins(*MODEL, *without_layout, *imported) == [WHOLE] * 3 * len(MODEL)


def test_a_program_that_was_given_back_stays_the_model_s(log: Log) -> None:
    broken = MODEL[0].replace("mut ", "", 1)
    log.ask(fenced(broken))
    log.ask(fenced(MODEL[0]), "Solve this.", f"```rust\n{broken}```", "error: cannot borrow as mutable. Mend it.")
    assert log.origins(MODEL[0]) == [WHOLE]


@pytest.mark.parametrize("put", ["{0}{1}", "{1}{0}"], ids=["before", "after"])
def test_a_template_may_stand_around_what_the_model_wrote(log: Log, put: str) -> None:
    for function in FUNCTIONS:
        log.ask(f"Here is the function.\n```rust\n{function}```")
    stitched = [put.format(TEMPLATE, function) for function in FUNCTIONS]
    assert log.origins(*stitched, TABLE[0]) == [WHOLE] * 3 + [REFUSED]
    assert log.origins(stitched[0]) == [REFUSED]  # it is one only if it serves more than one problem


def test_an_edit_counts_only_where_the_program_does_not_compile_without_it(log: Log) -> None:
    wrong = 'fn main() {\n    let a = vec![1];\n    let b: i32 = 2;\n    println!("{} {}", a[0], b);\n}\n'
    right = wrong.replace("i32", "i64")
    broken = wrong.replace("vec![1]", "vec![1i32]").replace("a[0]", "a[0i32]")
    log.ask(fenced(wrong)).ask(fenced(broken))
    with Judge(jobs=1) as judge:
        answers = [Answer(right)] + [Answer(broken.replace("a[0i32]", "a[0]"))] + [Answer(None, "exception")] * 18
        places = [answer.failure for answer in refuse_foreign(answers, log.calls, judge)[:2]]
        assert places == [NOT_THE_MODELS, ""]
        many = [answers[1]] * 10
        assert sum(answer.source is not None for answer in refuse_foreign(many, log.calls, judge)) == 1


# What carries answers in


def test_a_table_is_refused_however_it_is_dressed(log: Log) -> None:
    for source in MODEL:
        log.ask(fenced(source))
    spliced = [f"mod never {{\n{model}\n}}\n{own}" for model, own in zip(MODEL, TABLE, strict=True)]
    longer = [f"{own}\nmod never {{ {' '.join(f'mod m{i} {{ {model} }}' for i in range(9))} }}"
              for model, own in zip(MODEL, TABLE, strict=True)]  # fmt: skip
    for programs in (TABLE, list(map(renamed, TABLE)), spliced, longer):
        assert log.origins(*programs) == [REFUSED] * len(TABLE)


@pytest.mark.parametrize(
    "trick",
    [
        "/* /* */ // */ {own}",
        'const A: &std::ffi::CStr = cr#" " // "#; {own}',
        "const A: char = '\\''; //'\n{own}",
        "use std::primitive::i64 as i32;\n{own}",
        "#![allow(unused)] {own}",
        "/** {own} */",
    ],
)
def test_nothing_that_the_compiler_reads_is_left_out(trick: str) -> None:
    own = "fn extra() { done(1); }"
    words = " ".join(texts_of(trick.format(own=own)))
    assert "extra" in words
    assert "use std" not in trick or "i64" in words


def test_plain_comments_and_library_imports_are_left_out() -> None:
    text = "//// a\n/* b /* c */ d */ use std::{io, fmt};\n#[allow(dead_code)] fn f() {}"
    assert texts_of(text) == ["fn", "f", "(", ")", "{", "}"]
    assert texts_of("'a' '\\'' '\\u{1F600}' 'life \"a\\\"//b\" r#\"c\"d\"#") == [
        "'a'", "'\\''", "'\\u{1F600}'", "'life", '"a\\"//b"', 'r#"c"d"#'
    ]  # fmt: skip


@pytest.mark.parametrize("told", [str, renamed, lambda source: " ".join(reversed(re.findall(r"\w+|[^\w\s]", source)))])
def test_what_a_prompt_had_first_is_not_the_model_s(log: Log, told: object) -> None:
    assert callable(told)
    log.ask(fenced(TABLE[0]), f"Write this again: {told(TABLE[0])}")
    log.ask(fenced(TABLE[0]))  # nor is it when it comes again
    assert log.origins(TABLE[0]) == [REFUSED]


def test_an_echo_in_parts_or_by_way_of_another_answer_is_refused(log: Log) -> None:
    lines = TABLE[0].splitlines(keepends=True)
    parts = ["".join(lines[start : start + 6]) for start in range(0, len(lines), 6)]
    for part in parts:
        log.ask("Noted.", f"Remember: {part}")
    log.ask(fenced(TABLE[0]), *parts, "Put these together.")
    log.ask(fenced(TABLE[1]), TABLE[1])
    log.ask(fenced(TABLE[1].replace("println", "print")), TABLE[1], "Use print.")
    assert log.origins(TABLE[0], TABLE[1].replace("println", "print")) == [REFUSED] * 2


def test_templates_that_differ_by_problem_are_refused(log: Log) -> None:
    for function in FUNCTIONS:
        log.ask(fenced(function))
    own: Sequence[str] = [f'fn main() {{ print!("{{}}", solve("").len() * {k} + 1); }}\n' for k in (2, 4, 6)]
    programs = [f"{a}{b}" for a, b in zip(own, FUNCTIONS, strict=True)]
    assert log.origins(*programs).count(WHOLE) == 0
