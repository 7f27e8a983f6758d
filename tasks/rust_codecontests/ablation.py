"""What each step of a system gains with the stand-in model: ``python ablation.py [--seeds 5] [--split test]``.

The stand-in's odds are ours (re_bench_gateway.standin.choosing), and so is this table: it shows that the stand-in
rewards what works with real models, not how much it works with any of them.

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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pool

from re_bench.data.cache import cache_directory
from re_bench_gateway.standin import StandIn
from re_bench_gateway.standin.source import canonical

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from re_bench_gateway.standin import Problem, Program

MODEL = "gpt-3.5-turbo-0125"
MADE_INPUTS = 12
RUN_S = 2.0
RUSTC = (
    "rustc",
    "--edition",
    "2021",
    "-C",
    "opt-level=2",
    "-C",
    "debuginfo=0",
    "-A",
    "warnings",
    "--crate-name",
    "main",
)
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
    """Asks the stand-in about one problem, and counts."""

    model: StandIn
    case: Case
    left: int
    asked: int = 0
    request: str = "Write a Rust program that solves this problem."

    async def ask(self, *further: tuple[str, str]) -> str:
        """Return the answer to the problem, or to further messages after it."""
        statement = self.case.problem.statement + self._examples()
        request = f"{self.request}\n\n{statement}"
        messages = [{"role": role, "content": content} for role, content in (("user", request), *further)]
        body = {"model": MODEL, "messages": messages, "temperature": 0.7, "max_tokens": 1600}
        self.left, self.asked = self.left - 1, self.asked + 1
        content: str = (await self.model.answer(body))["choices"][0]["message"]["content"]
        return content

    async def mend(self, source: str) -> str:
        """Return the answer to what is wrong with a program, or to the bare problem if nothing seems to be."""
        behaviour = self.case.behaviour(source)
        return await self.ask(("assistant", f"```rust\n{source}\n```"), ("user", self._remark(behaviour)))

    def _remark(self, behaviour: Behaviour) -> str:
        if behaviour.compiler:
            return f"It does not compile:\n{behaviour.compiler[:1500]}\nPlease mend the program."
        for text, expected, output in zip(self.case.inputs, self.case.expected, behaviour.outputs, strict=False):
            if output != expected:
                found = "the program failed: thread 'main' panicked at main.rs" if output is None else f"Got:\n{output}"
                return f"A test fails.\nInput:\n{text}\nExpected:\n{expected}\n{found}, but it should not be.\nMend it."
        return "This is not right. Try again."

    def _examples(self) -> str:
        tests = zip(self.case.inputs, self.case.expected, strict=False)
        return "".join(f"\n\nExample input\n{text}\nExample output\n{output}" for text, output in tests)


def first_block(text: str) -> str:
    """Return what stands in the first fence, or all of a text without one."""
    found = _FENCED.search(text)
    return found[1] if found else text


def program_in(text: str) -> str:
    """Return the longest fenced program, or what looks like one in a text without any."""
    fenced = [block for block in _FENCED.findall(text) if "fn main" in block]
    if fenced:
        return str(max(fenced, key=len))
    start = re.search(r"^(use |fn |#!?\[|const |struct |static |type |mod |impl |enum )", text, re.MULTILINE)
    end = [found.end() for found in re.finditer(r"^\}", text, re.MULTILINE)]
    return text[start.start() : end[-1]] if start and end else text


async def raw(chat: Chat) -> str:
    """One call, its answer as it comes."""
    return await chat.ask()


async def stripped(chat: Chat) -> str:
    """The program in the first fence."""
    return first_block(await chat.ask())


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
    known = len(chat.case.expected)
    votes = Counter(chat.case.behaviour(source).outputs[known:] for source in candidates)
    return max(candidates, key=lambda source: votes[chat.case.behaviour(source).outputs[known:]])


async def reasoning(chat: Chat) -> str:
    """The same, with the request to reason about the algorithm and the limits first."""
    chat.request = f"Think step by step about the limits and the algorithm first. {chat.request}"
    return await voting(chat)


async def _first(chat: Chat, good: Callable[[str], bool]) -> str:
    source = ""
    while chat.left and not (source and good(source)):
        source = program_in(await chat.ask())
    return source


async def _candidates(chat: Chat, wanted: int, depth: int = 2) -> list[str]:
    """Return programs that pass the public tests, asking afresh and mending by turns; else the last one."""
    found: list[str] = []
    source = ""
    while chat.left and len(found) < wanted:
        source = program_in(await chat.ask())
        for _ in range(depth):
            if chat.case.passes(source) or not chat.left:
                break
            source = program_in(await chat.mend(source))
        if chat.case.passes(source):
            found.append(source)
    return found or [source]


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
    known: Sequence[str] = tests["PUBLIC"]
    inputs = (*known, *_made_inputs(known, problem.key))
    behaviours = {program.canonical: _behaviour(program, inputs) for program in problem.programs}
    return Case(problem, inputs, tuple(_tokens(tests["solve"](text)) for text in known), behaviours)


def _made_inputs(known: Sequence[str], key: str) -> list[str]:
    """Return public inputs in which some numbers are others, which may be wrong inputs: a system knows no better."""
    draw = random.Random(key)
    return [_changed(draw.choice(known), draw) for _ in range(MADE_INPUTS)]


def _changed(text: str, draw: random.Random) -> str:
    pieces = re.split(r"(-?\d+)", text)
    after_first_line = [place for place in range(1, len(pieces), 2) if "\n" in "".join(pieces[:place])]
    places = after_first_line or list(range(1, len(pieces), 2))  # the first line mostly says how much follows
    change = draw.choice((_nudged, _repeated, _magnified))
    for place in draw.sample(places, min(len(places), draw.randint(1, 3))):
        pieces[place] = str(change(int(pieces[place]), int(pieces[draw.choice(places)]), draw))
    return "".join(pieces)


def _nudged(number: int, _other: int, draw: random.Random) -> int:
    return max(0, number + draw.choice((-2, -1, 1, 2)))


def _repeated(_number: int, other: int, _draw: random.Random) -> int:
    return other


def _magnified(number: int, _other: int, draw: random.Random) -> int:
    return number * int(10 ** draw.randint(1, 8))


def _behaviour(program: Program, inputs: Sequence[str]) -> Behaviour:
    key = hashlib.sha256(json.dumps([RUSTC, program.source, list(inputs)]).encode()).hexdigest()
    kept = cache_directory() / "rust_codecontests" / "ablation" / f"{key}.json"
    if not kept.exists():
        found = _observed(program, inputs)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([found.compiler, found.outputs]))
    compiler, outputs = json.loads(kept.read_text())
    return Behaviour(compiler, tuple(outputs))


def _observed(program: Program, inputs: Sequence[str]) -> Behaviour:
    with tempfile.TemporaryDirectory() as directory:
        source, binary = Path(directory, "main.rs"), Path(directory, "main")
        source.write_text(program.source)
        done = subprocess.run([*RUSTC, "-o", binary, source], capture_output=True, text=True, check=False)
        if done.returncode:
            return Behaviour(done.stderr.replace(str(source), "main.rs"))
        return Behaviour("", tuple(_output(binary, text) for text in inputs))


def _output(binary: Path, text: str) -> str | None:
    try:
        done = subprocess.run([binary], input=text.encode(), capture_output=True, timeout=RUN_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else _tokens(done.stdout.decode(errors="replace"))


def _tokens(text: str) -> str:
    return " ".join(text.split())


async def solved(cases: Sequence[Case], rung: Callable[[Chat], Awaitable[str]], seed: int, calls: int) -> list[float]:
    """Return the share of problems that a system solves, and how many calls it makes for each."""
    model = StandIn([case.problem for case in cases], seed=seed)
    chats = [Chat(model, case, calls) for case in cases]
    right = [chat.case.solved(await rung(chat)) for chat in chats]
    return [statistics.mean(right), statistics.mean(chat.asked for chat in chats)]


def table(cases: Sequence[Case], seeds: int, calls: int) -> list[dict[str, Any]]:
    """Return a row for every rung: its name, mean share of problems solved, the shares by seed, mean calls."""
    rows = []
    for name, rung in RUNGS:
        runs = [asyncio.run(solved(cases, rung, seed, calls)) for seed in range(seeds)]
        shares = [share for share, _calls in runs]
        rows.append({"name": name, "shares": shares, "calls": statistics.mean(asked for _share, asked in runs)})
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
