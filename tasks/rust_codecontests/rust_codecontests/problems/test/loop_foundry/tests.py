# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of loop_foundry: a register machine with nested loops of huge counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MOD = 10**9 + 7
PUBLIC: tuple[str, ...] = (
    "5\n1 2 3 4\nloop 3\nadd a b\nswap a c\nend\ninc d 10\n",
    "7\n0 1 0 5\nloop 2\nadd a b\nloop 4\nadd b a\nmul c 2\nend\nend\n",
)
HUGE = 10**18


def _case(start: tuple[int, ...], commands: list[str]) -> str:
    """Write one input."""
    return "\n".join([str(len(commands)), " ".join(map(str, start)), *commands]) + "\n"


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    yield _case((10**9,) * 4, ["inc a 1000000000"])
    yield _case((1, 2, 3, 4), ["loop 0", "set a 9", "loop 5", "inc b 1", "end", "end"])
    yield _case((0, 0, 0, 0), ["loop 1000000000000000000", "inc a 1", "end"])
    yield _case((1, 1, 0, 7), ["loop 1000000000000000000", "add a b", "swap a b", "end"])
    yield _case((3, 5, 7, 9), ["loop 1000000006", "mul a 2", "mul b 3", "inc c 1", "add d d", "end"])
    yield _case((3, 5, 7, 9), ["loop 1000000007", "mul a 2", "inc b 5", "add c a", "end"])
    yield _case((6, 6, 6, 6), ["loop 7", "end", "loop 999999999999999999", "loop 0", "end", "end"])
    yield _case(
        (1, 2, 3, 4), ["loop 12345678901", "set a 3", "add b a", "mul a 0", "swap c c", "add d b", "end", "mul c 0"]
    )
    yield _case((1, 1, 1, 1), ["add a a"] * 600)
    yield _case((1, 2, 3, 4), ["loop 2"] * 300 + ["end"] * 300)
    yield _case((9, 8, 7, 6), [f"loop {HUGE - 1}", "add a b", "swap b d", "add d c"] * 120 + ["end"] * 120)
    yield _case((1, 0, 0, 1), [f"loop {HUGE}", "add b a", "inc a 3"] * 100 + ["add c b", "swap c d", "end"] * 100)
    yield _case((5, 4, 3, 2), ["inc a 1", "loop 1", "add b a", "end", "set a 2", "loop 2", "mul b 3", "add b a", "end"])


def _random(rng: random.Random, count: int, most: int, depth: int) -> str:
    """Write a random program of about count commands."""
    commands: list[str] = []
    opened: list[int] = []
    while len(commands) < count:
        kind = rng.choice(["add", "inc", "mul", "set", "swap", "add", "swap", "loop", "end"])
        if kind == "loop":
            if len(opened) < depth:
                opened.append(len(commands))
                commands.append(f"loop {rng.randint(rng.choice([0, 1, 1]), most)}")
        elif kind == "end":
            if opened and (opened[-1] + 1 < len(commands) or not rng.randrange(10)):
                opened.pop()
                commands.append("end")
        elif kind in ("add", "swap"):
            commands.append(f"{kind} {rng.choice('abcd')} {rng.choice('abcd')}")
        elif kind == "inc" or not rng.randrange(3):
            value = rng.randint(0 if kind == "inc" else 1, rng.choice([3, 10**9]))
            commands.append(f"{kind} {rng.choice('abcd')} {value}")
    return _case(tuple(rng.randint(0, 10**9) for _ in range(4)), commands + ["end"] * len(opened))


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for count, most, depth in (
        (5, 3, 2),
        (12, 100, 2),
        (30, 10**6, 3),
        (90, 10**12, 6),
        (300, HUGE, 20),
        (560, HUGE, 30),
        (550, HUGE, 3),
    ):
        yield _random(rng, count, most, depth)


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _random(rng, rng.randint(1, 9), 4, 2)


def _unit() -> list[list[int]]:
    """Return the identity matrix."""
    return [[int(i == j) for j in range(5)] for i in range(5)]


def _product(x: list[list[int]], y: list[list[int]]) -> list[list[int]]:
    """Multiply two matrices."""
    columns = list(zip(*y, strict=True))
    return [[(r[0] * c[0] + r[1] * c[1] + r[2] * c[2] + r[3] * c[3] + r[4] * c[4]) % MOD for c in columns] for r in x]


def _power(base: list[list[int]], count: int) -> list[list[int]]:
    """Raise a matrix to a power."""
    power = _unit()
    while count:
        if count % 2:
            power = _product(base, power)
        base = _product(base, base)
        count //= 2
    return power


def _command(now: list[list[int]], name: str, x: int, last: str) -> None:
    """Let the affine map be followed by one command other than loop and end."""
    if name == "add":
        now[x] = [(p + q) % MOD for p, q in zip(now[x], now["abcd".index(last)], strict=True)]
    elif name == "swap":
        y = "abcd".index(last)
        now[x], now[y] = now[y], now[x]
    elif name == "inc":
        now[x] = [(p + int(last) * q) % MOD for p, q in zip(now[x], now[4], strict=True)]
    elif name == "mul":
        now[x] = [p * int(last) % MOD for p in now[x]]
    else:
        now[x] = [0, 0, 0, 0, int(last)]


def solve(text: str) -> str:
    """Compose the commands as affine maps in homogeneous coordinates."""
    lines = [line.split() for line in text.splitlines()]
    stack = [_unit()]
    counts = []
    for line in lines[2:]:
        if line[0] == "loop":
            counts.append(int(line[1]))
            stack.append(_unit())
        elif line[0] == "end":
            body = stack.pop()
            stack[-1] = _product(_power(body, counts.pop()), stack[-1])
        else:
            _command(stack[-1], line[0], "abcd".index(line[1]), line[2])
    start = [*map(int, lines[1]), 1]
    return " ".join(str(sum(p * q for p, q in zip(row, start, strict=True)) % MOD) for row in stack[0][:4]) + "\n"


def brute(text: str) -> str:
    """Run the program with a program counter and a stack of loops."""
    program = [line.split() for line in text.splitlines()[2:]]
    registers = dict(zip("abcd", map(int, text.splitlines()[1].split()), strict=True))
    partner: dict[int, int] = {}
    opened = []
    for i, line in enumerate(program):
        if line[0] == "loop":
            opened.append(i)
        elif line[0] == "end":
            partner[i] = opened.pop()
            partner[partner[i]] = i
    left: dict[int, int] = {}
    counter = 0
    while counter < len(program):
        name, *rest = program[counter]
        if name == "loop":
            left[counter] = int(rest[0])
            if left[counter] == 0:
                counter = partner[counter]
        elif name == "end":
            begin = partner[counter]
            left[begin] -= 1
            if left[begin] > 0:
                counter = begin
        elif name == "swap":
            x, y = rest
            registers[x], registers[y] = registers[y], registers[x]
        else:
            x, y = rest
            value = registers[y] if name == "add" else int(y)
            old = registers[x]
            registers[x] = {"add": old + value, "inc": old + value, "mul": old * value, "set": value}[name] % MOD
        counter += 1
    return " ".join(str(registers[x] % MOD) for x in "abcd") + "\n"
