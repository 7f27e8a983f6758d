"""The shortcuts of the interpreter give the bits, and the errors, of the stock one, which runs in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import json, os, sys, warnings
os.environ["TRITON_INTERPRET"] = "1"
warnings.simplefilter("ignore")
import torch, triton, triton.language as tl
if sys.argv[1] == "fast":
    from triton_cumsum.sandboxed import fast_interpreter
    fast_interpreter.install()

@triton.jit
def beside(a, b):
    return tl.reshape(tl.permute(tl.join(a, b), (0, 2, 1)), (16, 8))

@triton.jit
def shapes(x, w, out):
    row, column = tl.arange(0, 16), tl.arange(0, 4)[None, :]
    a = tl.load(x + 4 * row[:, None] + column)
    b = tl.load(x + 64 + 4 * row[:, None] + column, mask=column < 3, other=7)
    both = beside(a, b)
    left, right = tl.split(tl.reshape(both, (16, 4, 2)))
    total = tl.sum(left, 1)[:, None] * right + tl.cumsum(a, 1) - tl.trans(tl.reshape(b, (4, 16)))
    place = 8 * row[:, None] + tl.arange(0, 8)[None, :]
    tl.store(out + place, both ^ beside(total, total >> 3))
    tl.store(out + 128 + place, tl.broadcast_to(tl.max(both, 0)[None, :], (16, 8)) + tl.full((16, 8), 5, tl.int32))

@triton.jit
def types(x, w, out):
    lane = tl.arange(0, 16)
    a, wide = tl.load(x + lane), tl.load(w + lane)
    small = a.to(tl.int8)
    mixed = wide * a + 5000000000 * (a > 3).to(tl.int64) - (wide >> 33) + (wide << a % 3)
    bits = (a & 6) | (a ^ lane) | (a << 2) | (a >> 1) | (~a) | (-a)
    unsigned = a.to(tl.uint32) // 3 + a.to(tl.uint32) % 7
    scalar = tl.sum(a, 0)
    chosen = tl.where((a == lane) | (a != scalar) & (a <= 4) & (a >= -4), small, scalar)
    scalar_first = 3 - a + scalar * a + (7 < a).to(tl.int32) + (scalar << 1) + (scalar > 2).to(tl.int32)
    halves = (a / 2).to(tl.int32) + tl.minimum(a, lane) + tl.maximum(a, 2) + (a * 1.5).to(tl.int32)
    true = (a > 0) & (wide < 0)
    tl.store(out + lane, mixed.to(tl.int32) + chosen + scalar_first)
    truth = true + (true == True) + (mixed >> 32).to(tl.int32)
    tl.store(out + 16 + lane, bits + unsigned.to(tl.int32) + halves + truth)

@triton.jit
def wrong_shape(x, w, out):
    tl.store(out + tl.arange(0, 8), tl.arange(0, 8) + tl.arange(0, 4))

@triton.jit
def wrong_length(x, w, out):
    tl.store(out + tl.arange(0, 8), tl.zeros((3,), tl.int32))

@triton.jit
def wrong_type(x, w, out):
    tl.store(out, x + x)

results = {}
for kernel in (shapes, types, wrong_shape, wrong_length, wrong_type):
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(-(2**31), 2**31 - 1, (256,), dtype=torch.int64, generator=generator).to(torch.int32)
    x[::3] %= 9
    w, out = x.to(torch.int64) * 2**20, torch.zeros(256, dtype=torch.int32)
    try:
        kernel[(1,)](x, w, out)
        results[kernel.fn.__name__] = out.tolist()
    except Exception as error:
        results[kernel.fn.__name__] = type(error).__name__
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    script = tmp_path_factory.mktemp("types") / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    results = {}
    for way in ("stock", "fast"):
        command = [sys.executable, str(script), way]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        results[way] = json.loads(done.stdout)
    return results


@pytest.mark.parametrize("name", ["shapes", "types", "wrong_shape", "wrong_length", "wrong_type"])
def test_the_short_way_gives_what_the_stock_interpreter_gives(results: dict[str, dict[str, Any]], name: str) -> None:
    assert results["fast"][name] == results["stock"][name]


def test_the_kernels_do_run(results: dict[str, dict[str, Any]]) -> None:
    assert all(len(set(results["fast"][name])) > 10 for name in ("shapes", "types"))
    assert all(isinstance(results["fast"][name], str) for name in ("wrong_shape", "wrong_length", "wrong_type"))
