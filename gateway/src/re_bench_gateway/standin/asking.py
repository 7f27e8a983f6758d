"""What a prompt asks for, and what it reports about a program that it shows. Nothing else of its wording matters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from re_bench_gateway.standin.problems import ACCEPTED, COMPILE_ERROR

if TYPE_CHECKING:
    from re_bench_gateway.standin.conversation import Conversation, Stated
    from re_bench_gateway.standin.problems import Program

__all__ = ["Asked", "Report", "asked", "reported"]

# These are looked for in words: small letters, no punctuation.
_REASON = re.compile(
    r"\b(reason|reasoning|think|thinking|step by step|plan|explain|outline|analy[sz]e|consider|discuss)\b"
)
_ABOUT = re.compile(r"\b(algorithms?|approach|complexity|constraints?|limits?|edge cases?|corner cases?)\b")
_BARE = re.compile(
    r"\b(code only|(only|just|nothing but|no more than) (the |a |valid |raw |plain |complete |full |rust )*"
    r"(code|program|source)|no (explanations?|prose|markdown|fences?|backticks|commentary)"
    r"|without (any )?(explanations?|prose|markdown|fences?))\b"
)
_NO_CODE = re.compile(
    r"\b(do not|don t|without|no need to) (yet )?(write|writing|give|giving|include|output) (any |the )?code\b"
)
_RUST = re.compile(r"\brust\b")
_INSISTS = re.compile(
    r"\b((only|must|always|strictly|exclusively)( \w+){0,6} rust|rust( \w+)? only|rust 20\d\d|rust edition"
    r"|(not|no|never)( \w+){0,3} (python|c|cpp|java))\b"
)

_EXPECTED = re.compile(r"\bexpected\b")
_ACTUAL = re.compile(r"\b(got|actual(ly)?|received|printed|produced|returned|(your|program s?|its) output|but)\b")
_INPUT = re.compile(r"\binput\b")
_DIED = re.compile(r"\b(panicked at|runtime error|overflowed|out of bounds)\b")
_SLOW = re.compile(
    r"\b(time limit exceeded|exceed(s|ed) the (time|memory) limit|timed out|took too long|too slow|too much memory"
    r"|memory limit exceeded|tle|mle)\b"
)
_COMPLAINT = re.compile(r"\b(wrong|incorrect|not right|fail(s|ed|ing)?|errors?|again|bugs?|fix|mistakes?|slow)\b")
_COMPILER = re.compile(r"error\[E\d{4}\]|^\s*error: ", re.MULTILINE)  # in the text as it is written

_WORSE_THAN_WRONG = {"runtime error": _DIED, "time limit": _SLOW, "memory limit": _SLOW}


@dataclass(frozen=True)
class Asked:
    """What a prompt asks for.

    Attributes:
        reasoning: to reason about the algorithm and the limits first.
        bare: to answer with code only.
        no_code: to answer without code.
        rust: how much it wants Rust: 0 it does not say, 1 it says Rust, 2 it insists.
    """

    reasoning: bool
    bare: bool
    no_code: bool
    rust: int


class Report(Enum):
    """What a prompt reports about the program that it shows, from nothing to what helps most."""

    NONE = "nothing"
    COMPLAINT = "a complaint without anything to go by"
    TEST = "a failing test, or how the program ended"
    COMPILER = "what the compiler said"


def asked(stated: Stated) -> Asked:
    """Read what a prompt asks for from the words that belong to no statement."""
    wishes = stated.wishes
    return Asked(
        reasoning=bool(_REASON.search(wishes) and _ABOUT.search(wishes)),
        bare=bool(_BARE.search(wishes)),
        no_code=bool(_NO_CODE.search(wishes)),
        rust=2 if _INSISTS.search(wishes) else 1 if _RUST.search(wishes) else 0,
    )


def reported(conversation: Conversation, stated: Stated, program: Program) -> Report:
    """Read what the last message reports about a program; what cannot be true of it counts as a complaint."""
    remark = stated.remark
    compiler = bool(_COMPILER.search(conversation.last))
    test = all(pattern.search(remark) for pattern in (_INPUT, _EXPECTED, _ACTUAL))
    ended = (pattern := _WORSE_THAN_WRONG.get(program.verdict)) is not None and bool(pattern.search(remark))
    if compiler and program.verdict == COMPILE_ERROR:
        return Report.COMPILER
    if (test or ended) and program.verdict not in {ACCEPTED, COMPILE_ERROR}:
        return Report.TEST
    return Report.COMPLAINT if compiler or test or _COMPLAINT.search(remark) else Report.NONE
