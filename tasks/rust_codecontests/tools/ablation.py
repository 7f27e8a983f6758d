"""Measure the gain from each step of a system with the stand-in model: ``python tools/ablation.py [--seeds 5]``.

We chose the stand-in's odds (``stand_in/program_choice.py``). The table therefore only shows that the stand-in rewards
methods that work with real models, not how much these methods gain with a real model.

No answer is judged: each program is looked up in its pool, where its verdict is known. Each program in the pools is
compiled, and run on the public tests and on inputs generated from them; the cache keeps the results. The programs are
our own and run without a sandbox.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import runpy
import statistics
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.data.cache import cache_directory
from rust_codecontests import pool
from rust_codecontests.profiles import MODEL
from rust_codecontests.stand_in.model import StandIn
from rust_codecontests.stand_in.problems import canonical

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from rust_codecontests.stand_in.problems import Problem, Program

MADE_INPUTS = 12
RUN_S = 2.0
OPTIONS = ("--edition", "2021", "-C", "opt-level=2", "-C", "debuginfo=0", "-A", "warnings", "--crate-name", "main")
_FENCED = re.compile(r"```[^\n]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Behaviour:
    """What a system can observe of a program."""

    compiler: str
    """The compiler's message; empty if the program compiles."""
    outputs: tuple[str | None, ...] = ()
    """The output for each input, or None for a failure."""


@dataclass(frozen=True)
class Case:
    """A problem, its public tests and generated inputs, and the behaviour of the programs in its pool."""

    problem: Problem
    inputs: tuple[str, ...]
    expected: tuple[str, ...]
    behaviours: dict[str, Behaviour]

    def behaviour(self, source: str) -> Behaviour:
        """Return the behaviour of a program; a program that is not in the pool counts as not compiling."""
        return self.behaviours.get(canonical(source), Behaviour("error: expected one of `!` or `::`, found `is`"))

    def passes(self, source: str) -> bool:
        """Return whether a program passes the public tests."""
        return self.behaviour(source).outputs[: len(self.expected)] == self.expected

    def solved(self, source: str) -> bool:
        """Return whether a program solves the problem."""
        return canonical(source) in {program.canonical for program in self.problem.correct}


@dataclass
class Chat:
    """Ask the stand-in about one problem, and count the remaining calls."""

    model: StandIn
    case: Case
    left: int
    request: str = "Write a Rust program that solves this problem."

    async def ask(self, *further: tuple[str, str]) -> str:
        """Return the answer to the problem, followed by further messages if given."""
        tests = zip(self.case.inputs, self.case.expected, strict=False)
        examples = "".join(f"\n\nExample input\n{text}\nExample output\n{output}" for text, output in tests)
        request = f"{self.request}\n\n{self.case.problem.statement}{examples}"
        messages = [{"role": role, "content": content} for role, content in (("user", request), *further)]
        body = {"model": MODEL, "messages": messages, "temperature": 0.7, "max_tokens": 1600}
        self.left -= 1
        content: str = (await self.model.answer(body))["choices"][0]["message"]["content"]
        return content

    async def repair(self, source: str) -> str:
        """Return the answer to a remark about a program's error; the remark is unspecific if no error is known."""
        return await self.ask(("assistant", f"```rust\n{source}\n```"), ("user", self._remark(source)))

    def _remark(self, source: str) -> str:
        behaviour = self.case.behaviour(source)
        if behaviour.compiler:
            return f"It does not compile:\n{behaviour.compiler[:1500]}\nPlease repair the program."
        for text, expected, output in zip(self.case.inputs, self.case.expected, behaviour.outputs, strict=False):
            if output != expected:
                end = "the program failed: thread 'main' panicked at main.rs" if output is None else f"Got:\n{output}"
                return f"A test fails.\nInput:\n{text}\nExpected:\n{expected}\n{end}, but it should not be.\nMend it."
        return "This is not right. Try again."


def program_in(text: str) -> str:
    """Return the longest fenced program, or the part of the text that looks like a program if none is fenced."""
    fenced = [block for block in _FENCED.findall(text) if "fn main" in block]
    if fenced:
        return str(max(fenced, key=len))
    start = re.search(r"^(use |fn |#!?\[|const |struct |static |type |mod |impl |enum )", text, re.MULTILINE)
    ends = [match.end() for match in re.finditer(r"^\}", text, re.MULTILINE)]
    return text[start.start() : ends[-1]] if start and ends else text


async def raw(chat: Chat) -> str:
    """Return the answer to one call, unchanged."""
    return await chat.ask()


async def stripped(chat: Chat) -> str:
    """Return the first fenced block of an answer, or the whole answer if it has no fence."""
    answer = await chat.ask()
    block = _FENCED.search(answer)
    return block[1] if block else answer


async def extracted(chat: Chat) -> str:
    """Return the program in an answer, with or without a fence."""
    return program_in(await chat.ask())


async def compiling(chat: Chat) -> str:
    """Return the first program of several answers that compiles."""
    return await _first(chat, lambda source: not chat.case.behaviour(source).compiler)


async def public(chat: Chat) -> str:
    """Return the first program of several answers that passes the public tests."""
    return await _first(chat, chat.case.passes)


async def repairing(chat: Chat) -> str:
    """Return the first program that passes the public tests, asking the model to repair programs that fail."""
    return (await _candidates(chat, 1))[0]


async def voting(chat: Chat) -> str:
    """Return a program of the largest group that has equal outputs on generated inputs and passes the public tests."""
    candidates = await _candidates(chat, chat.left)
    outputs = [chat.case.behaviour(source).outputs[len(chat.case.expected) :] for source in candidates]
    votes = Counter(outputs)
    return max(zip(candidates, outputs, strict=True), key=lambda pair: votes[pair[1]])[0]


async def reasoning(chat: Chat) -> str:
    """Vote as :func:`voting` does, but ask the model to reason about the limits and the algorithm first."""
    chat.request = f"Think step by step about the limits and the algorithm first. {chat.request}"
    return await voting(chat)


async def _first(chat: Chat, good: Callable[[str], bool]) -> str:
    source = ""
    while chat.left and not (source and good(source)):
        source = program_in(await chat.ask())
    return source


async def _candidates(chat: Chat, count: int, depth: int = 2) -> list[str]:
    """Return up to ``count`` programs that pass the public tests, or else the last program.

    A failing program is repaired up to ``depth`` times before a new program is requested.
    """
    passing: list[str] = []
    source = ""
    while chat.left and len(passing) < count:
        source = program_in(await chat.ask())
        for _ in range(depth):
            if chat.case.passes(source) or not chat.left:
                break
            source = program_in(await chat.repair(source))
        if chat.case.passes(source):
            passing.append(source)
    return passing or [source]


RUNGS: tuple[tuple[str, Callable[[Chat], Awaitable[str]]], ...] = (
    ("raw reply", raw),
    ("+ first fence stripped", stripped),
    ("+ extracted with care", extracted),
    ("+ sampled, first that compiles", compiling),
    ("+ first that passes the public tests", public),
    ("+ errors fed back", repairing),
    ("+ voting among those that pass", voting),
    ("+ asked to reason first", reasoning),
)


def case_of(directory: Path) -> Case:
    """Read a problem, and determine the behaviour of the programs in its pool."""
    problem = pool.read(directory)
    tests = runpy.run_path(str(directory / "tests.py"))
    public_inputs: Sequence[str] = tests["PUBLIC"]
    inputs = (*public_inputs, *_made_inputs(public_inputs, problem.key))
    behaviours = {program.canonical: _behaviour(program, inputs) for program in problem.programs}
    return Case(problem, inputs, tuple(" ".join(tests["solve"](text).split()) for text in public_inputs), behaviours)


_CHANGES: tuple[Callable[[int, int, random.Random], int], ...] = (
    lambda number, _other, draw: max(0, number + draw.choice((-2, -1, 1, 2))),
    lambda _number, other, _draw: other,
    lambda number, _other, draw: number * int(10 ** draw.randint(1, 8)),
)
"""Functions that change a number in an input; the second argument is another number of the same input."""


def _made_inputs(public_inputs: Sequence[str], key: str) -> list[str]:
    """Return public inputs with some numbers changed; they may be invalid inputs, which a system cannot know."""
    draw = random.Random(key)
    return [_changed(draw.choice(public_inputs), draw) for _ in range(MADE_INPUTS)]


def _changed(text: str, draw: random.Random) -> str:
    pieces = re.split(r"(-?\d+)", text)
    after_first_line = [index for index in range(1, len(pieces), 2) if "\n" in "".join(pieces[:index])]
    numbers = after_first_line or list(range(1, len(pieces), 2))  # the first line usually contains counts
    change = draw.choice(_CHANGES)
    for index in draw.sample(numbers, min(len(numbers), draw.randint(1, 3))):
        pieces[index] = str(change(int(pieces[index]), int(pieces[draw.choice(numbers)]), draw))
    return "".join(pieces)


def _behaviour(program: Program, inputs: Sequence[str]) -> Behaviour:
    key = hashlib.sha256(json.dumps([["rustc", *OPTIONS], program.source, list(inputs)]).encode()).hexdigest()
    path = cache_directory() / "rust_codecontests" / "ablation" / f"{key}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(astuple(_observed(program, inputs))))
    compiler, outputs = json.loads(path.read_text())
    return Behaviour(compiler, tuple(outputs))


def _observed(program: Program, inputs: Sequence[str]) -> Behaviour:
    with tempfile.TemporaryDirectory() as name:
        source, binary = Path(name, "main.rs"), Path(name, "main")
        source.write_text(program.source)
        done = subprocess.run(["rustc", *OPTIONS, "-o", binary, source], capture_output=True, text=True, check=False)
        if done.returncode:
            return Behaviour(done.stderr.replace(str(source), "main.rs"))
        return Behaviour("", tuple(_output(binary, text) for text in inputs))


def _output(binary: Path, text: str) -> str | None:
    try:
        done = subprocess.run([binary], input=text.encode(), capture_output=True, timeout=RUN_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else " ".join(done.stdout.decode(errors="replace").split())


async def solved(cases: Sequence[Case], rung: Callable[[Chat], Awaitable[str]], seed: int, calls: int) -> list[float]:
    """Return the share of problems that a system solves, and the mean number of calls per problem."""
    model = StandIn([case.problem for case in cases], seed=seed)
    chats = [Chat(model, case, calls) for case in cases]
    right = [chat.case.solved(await rung(chat)) for chat in chats]
    return [statistics.mean(right), statistics.mean(calls - chat.left for chat in chats)]


def table(cases: Sequence[Case], seeds: int, calls: int) -> list[dict[str, Any]]:
    """Return a row for every system: its name, the shares of problems solved by seed, and the mean number of calls."""
    rows = []
    for name, rung in RUNGS:
        runs = [asyncio.run(solved(cases, rung, seed, calls)) for seed in range(seeds)]
        shares = [share for share, _calls in runs]
        rows.append({"name": name, "shares": shares, "calls": statistics.mean(count for _share, count in runs)})
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the gain from each step of a system with the stand-in model.")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds of the stand-in (default 5)")
    parser.add_argument("--split", choices=pool.SPLITS, default="test", help="split of the problems (default test)")
    parser.add_argument("--calls", type=int, default=12, help="maximum calls per problem (default 12)")
    options = parser.parse_args()
    with ThreadPoolExecutor(2) as workers:
        cases = list(workers.map(case_of, pool.directories([options.split])))
    print(f"{len(cases)} problems of split {options.split}, stand-in model, seeds 0 to {options.seeds - 1}")
    print(f"{'system':<40} {'solved':>7} {'spread':>13} {'calls':>6}")
    for row in table(cases, options.seeds, options.calls):
        shares = row["shares"]
        spread = f"{min(shares):.2f} to {max(shares):.2f}"
        print(f"{row['name']:<40} {statistics.mean(shares):7.3f} {spread:>13} {row['calls']:6.1f}")


if __name__ == "__main__":
    main()
