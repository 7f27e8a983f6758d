"""What each step of a system gains with the stand-in model: ``python tools/ablation.py [--seeds 5]``.

The stand-in's odds are ours (``stand_in/program_choice.py``), and so is this table: it shows that the stand-in rewards
what works with real models, not how much it works with any of them.

No answer is judged here. A program is traced back to its pool, where its verdict is known; each program of the pools is
compiled and run once, on the public tests and on inputs made from them, and the results are kept in the cache.
The programs are our own and run without a sandbox.
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
    """What a program does, as a system can find out: what the compiler says, and the outputs, None if it fails."""

    compiler: str
    outputs: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class Case:
    """A problem, what is public of it, and what the programs of its pool do with it."""

    problem: Problem
    inputs: tuple[str, ...]
    expected: tuple[str, ...]
    behaviours: dict[str, Behaviour]

    def behaviour(self, source: str) -> Behaviour:
        """Return what a program does; one that is no program of the pool does not compile."""
        return self.behaviours.get(canonical(source), Behaviour("error: expected one of `!` or `::`, found `is`"))

    def passes(self, source: str) -> bool:
        """Tell whether a program gives the expected outputs of the public tests."""
        return self.behaviour(source).outputs[: len(self.expected)] == self.expected

    def solved(self, source: str) -> bool:
        """Tell whether a program is accepted."""
        return canonical(source) in {program.canonical for program in self.problem.correct}


@dataclass
class Chat:
    """Asks the stand-in about one problem, and counts the calls that are left."""

    model: StandIn
    case: Case
    left: int
    request: str = "Write a Rust program that solves this problem."

    async def ask(self, *further: tuple[str, str]) -> str:
        """Return the answer to the problem, or to further messages after it."""
        tests = zip(self.case.inputs, self.case.expected, strict=False)
        examples = "".join(f"\n\nExample input\n{text}\nExample output\n{output}" for text, output in tests)
        request = f"{self.request}\n\n{self.case.problem.statement}{examples}"
        messages = [{"role": role, "content": content} for role, content in (("user", request), *further)]
        body = {"model": MODEL, "messages": messages, "temperature": 0.7, "max_tokens": 1600}
        self.left -= 1
        content: str = (await self.model.answer(body))["choices"][0]["message"]["content"]
        return content

    async def mend(self, source: str) -> str:
        """Return the answer to what is wrong with a program, or to the bare problem if nothing seems to be."""
        return await self.ask(("assistant", f"```rust\n{source}\n```"), ("user", self._remark(source)))

    def _remark(self, source: str) -> str:
        behaviour = self.case.behaviour(source)
        if behaviour.compiler:
            return f"It does not compile:\n{behaviour.compiler[:1500]}\nPlease mend the program."
        for text, expected, output in zip(self.case.inputs, self.case.expected, behaviour.outputs, strict=False):
            if output != expected:
                end = "the program failed: thread 'main' panicked at main.rs" if output is None else f"Got:\n{output}"
                return f"A test fails.\nInput:\n{text}\nExpected:\n{expected}\n{end}, but it should not be.\nMend it."
        return "This is not right. Try again."


def program_in(text: str) -> str:
    """Return the longest fenced program, or what looks like one in a text without any."""
    fenced = [block for block in _FENCED.findall(text) if "fn main" in block]
    if fenced:
        return str(max(fenced, key=len))
    start = re.search(r"^(use |fn |#!?\[|const |struct |static |type |mod |impl |enum )", text, re.MULTILINE)
    ends = [match.end() for match in re.finditer(r"^\}", text, re.MULTILINE)]
    return text[start.start() : ends[-1]] if start and ends else text


async def raw(chat: Chat) -> str:
    """One call, its answer as it comes."""
    return await chat.ask()


async def stripped(chat: Chat) -> str:
    """What stands in the first fence, or all of an answer without one."""
    answer = await chat.ask()
    block = _FENCED.search(answer)
    return block[1] if block else answer


async def extracted(chat: Chat) -> str:
    """The program, whatever the answer looks like."""
    return program_in(await chat.ask())


async def compiling(chat: Chat) -> str:
    """The first program of several answers that compiles."""
    return await _first(chat, lambda source: not chat.case.behaviour(source).compiler)


async def public(chat: Chat) -> str:
    """The first that passes the public tests."""
    return await _first(chat, chat.case.passes)


async def repairing(chat: Chat) -> str:
    """The first that passes the public tests, of answers and what comes back when told what is wrong with them."""
    return (await _candidates(chat, 1))[0]


async def voting(chat: Chat) -> str:
    """One of the largest group with equal outputs on made inputs, of all that pass the public tests."""
    candidates = await _candidates(chat, chat.left)
    outputs = [chat.case.behaviour(source).outputs[len(chat.case.expected) :] for source in candidates]
    votes = Counter(outputs)
    return max(zip(candidates, outputs, strict=True), key=lambda pair: votes[pair[1]])[0]


async def reasoning(chat: Chat) -> str:
    """The same, with the request to reason about the algorithm and the limits first."""
    chat.request = f"Think step by step about the limits and the algorithm first. {chat.request}"
    return await voting(chat)


async def _first(chat: Chat, good: Callable[[str], bool]) -> str:
    source = ""
    while chat.left and not (source and good(source)):
        source = program_in(await chat.ask())
    return source


async def _candidates(chat: Chat, count: int, depth: int = 2) -> list[str]:
    """Return programs that pass the public tests, asking afresh and mending by turns; else the last one."""
    passing: list[str] = []
    source = ""
    while chat.left and len(passing) < count:
        source = program_in(await chat.ask())
        for _ in range(depth):
            if chat.case.passes(source) or not chat.left:
                break
            source = program_in(await chat.mend(source))
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
    """Read a problem and find out what its pool's programs do, once."""
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
"""What becomes of a number of an input; the second argument is another number of it."""


def _made_inputs(public_inputs: Sequence[str], key: str) -> list[str]:
    """Return public inputs in which some numbers are others, which may be wrong inputs: a system knows no better."""
    draw = random.Random(key)
    return [_changed(draw.choice(public_inputs), draw) for _ in range(MADE_INPUTS)]


def _changed(text: str, draw: random.Random) -> str:
    pieces = re.split(r"(-?\d+)", text)
    after_first_line = [index for index in range(1, len(pieces), 2) if "\n" in "".join(pieces[:index])]
    numbers = after_first_line or list(range(1, len(pieces), 2))  # the first line mostly says how much follows
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
    """Return the share of problems that a system solves, and how many calls it makes for each."""
    model = StandIn([case.problem for case in cases], seed=seed)
    chats = [Chat(model, case, calls) for case in cases]
    right = [chat.case.solved(await rung(chat)) for chat in chats]
    return [statistics.mean(right), statistics.mean(calls - chat.left for chat in chats)]


def table(cases: Sequence[Case], seeds: int, calls: int) -> list[dict[str, Any]]:
    """Return a row for every rung: its name, mean share of problems solved, the shares by seed, mean calls."""
    rows = []
    for name, rung in RUNGS:
        runs = [asyncio.run(solved(cases, rung, seed, calls)) for seed in range(seeds)]
        shares = [share for share, _calls in runs]
        rows.append({"name": name, "shares": shares, "calls": statistics.mean(count for _share, count in runs)})
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What each step of a system gains with the stand-in model.")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the stand-in, from 0 on (default 5)")
    parser.add_argument("--split", choices=pool.SPLITS, default="test", help="whose problems (default test)")
    parser.add_argument("--calls", type=int, default=12, help="calls a problem at most (default 12)")
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
