"""Harness of profile ``cpu``: replays a trace and counts what it costs, where the submission's module never was.

``replay({"trace": text, "length": n}, [x], [y])`` runs the trace, a text of JSON, on the int32 input ``x``, writes the
result to ``y`` and returns ``{"steps": [step, ...]}`` in the order of the run. A step is ``{"name", "kind"}`` and what
was counted of it, see :func:`torch_operators.cost` and :meth:`memory_counter.Counter.counts`; its kind is
``"kernel"`` or ``"operator"``. Views and allocations, which cost nothing, are left out. The scorer replays on other
values than those that were recorded: then a trace cannot carry any part of the answer.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import json
from typing import Any

import numpy as np
import torch
from re_bench.guest.refused import RefusedError

from triton_cumsum.harness import fast_interpreter
from triton_cumsum.harness.kernel_launch import Kernels
from triton_cumsum.harness.torch_operators import check_arguments, check_keywords, cost, resolve
from triton_cumsum.harness.trace_codec import (
    CAPTURED_BYTES,
    INPUT,
    STEPS,
    TRACE_BYTES,
    decode,
    decode_tensor,
    tensors_in,
)

Step = dict[str, Any]


def replay(args: dict[str, Any], inputs: list[memoryview], outputs: list[memoryview]) -> dict[str, list[Step]]:
    """Run ``args["trace"]`` on ``args["length"]`` int32 values; see the module.

    Raises:
        RefusedError: if the trace is malformed or holds what the profile does not allow.
        IndexError: if a kernel accesses memory outside of its tensors.
    """
    fast_interpreter.install()
    values = np.frombuffer(inputs[0], dtype=np.int32, count=args["length"])
    x = torch.from_numpy(values.copy())
    try:
        replayed = Replay(_parsed(args["trace"]), x)
        result = replayed.run()
    except (RefusedError, IndexError):
        raise
    except Exception as error:
        # Whatever a trace makes torch, Triton or Python say, it is the trace that is at fault.
        raise RefusedError(f"the recorded steps cannot be replayed: {type(error).__name__}: {error}") from error
    _check_result(x, values, result)
    np.frombuffer(outputs[0], dtype=np.int32)[:] = result.numpy()
    return {"steps": replayed.costs}


def _parsed(text: Any) -> Any:
    if not isinstance(text, str) or len(text) > TRACE_BYTES:
        raise RefusedError(f"the trace is no text of at most {TRACE_BYTES} bytes")
    return json.loads(text)


def _check_result(x: Any, values: Any, result: Any) -> None:
    if result.dtype != torch.int32 or result.shape != x.shape:
        raise RefusedError(
            f"the replayed steps give a tensor of {result.dtype} and shape {tuple(result.shape)}; expected that of x"
        )
    if not np.array_equal(x.numpy(), values):
        raise RefusedError("the replayed steps change the input x; leave it as it is")


class Replay:
    """One replay: the tensors by number, freed after their last use, and the cost of each step so far."""

    def __init__(self, trace: Any, x: Any) -> None:
        _check_trace(trace)
        self.trace = trace
        self.costs: list[Step] = []
        self._kernels = Kernels(trace["functions"])
        self._tensors: dict[int, Any] = {INPUT: x}
        for number, record in trace["captured"].items():
            self._tensors[int(number)] = decode_tensor(record)
        if sum(t.numel() * t.element_size() for n, t in self._tensors.items() if n != INPUT) > CAPTURED_BYTES:
            raise RefusedError(f"the trace captures more than {CAPTURED_BYTES} bytes of tensors")

    def run(self) -> Any:
        """Run all steps and return the result tensor."""
        last_use = self._last_uses()
        for index, step in enumerate(self.trace["steps"]):
            if "kernel" in step:
                self._launch(step)
            else:
                self._operate(step)
            for number in [n for n in self._tensors if last_use.get(n, -1) <= index]:
                del self._tensors[number]
        return self._tensor(self.trace["result"])

    def _tensor(self, number: Any) -> Any:
        if type(number) is not int or number not in self._tensors:
            raise RefusedError(f"the trace uses tensor {number!r} before any step made it")
        return self._tensors[number]

    def _launch(self, step: Step) -> None:
        name = self._kernels.name(step["kernel"])
        counter = self._kernels.launch(step["kernel"], step["grid"], step["arguments"], self._tensor, step["warps"])
        self._add(name, "kernel", **counter.counts())

    def _operate(self, step: Step) -> None:
        name = step["operator"]
        operator, rule = resolve(name)
        arguments = decode(step["arguments"], self._tensor)
        keywords = {key: decode(value, self._tensor) for key, value in step["keywords"].items()}
        check_keywords(name, operator, keywords)
        check_arguments(name, rule, [*arguments, *keywords.values()])
        try:
            result = operator(*arguments, **keywords)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise RefusedError(f"the operator {name} cannot be replayed: {error}") from error
        results = tensors_in(result)
        if len(results) != len(step["results"]):
            raise RefusedError(
                f"the operator {name} gave {len(results)} tensors in the replay, {len(step['results'])} in the trace"
            )
        self._tensors.update(zip(step["results"], results, strict=True))
        if rule != "free":
            self._add(name, "operator", **cost(operator, rule, arguments, keywords, result))

    def _add(self, name: str, kind: str, **counts: float) -> None:
        self.costs.append({"name": name, "kind": kind} | counts)

    def _last_uses(self) -> dict[int, int]:
        last = dict.fromkeys((INPUT, self.trace["result"]), len(self.trace["steps"]))
        for index, step in enumerate(self.trace["steps"]):
            for number in _numbers([step["arguments"], step.get("keywords"), step.get("results")]):
                last[number] = max(index, last.get(number, 0))
        return last


def _check_trace(trace: Any) -> None:
    kinds = {"captured": dict, "functions": list, "steps": list, "result": int}
    if not isinstance(trace, dict) or any(not isinstance(trace.get(key), kind) for key, kind in kinds.items()):
        raise RefusedError("the trace is malformed")
    if len(trace["steps"]) > STEPS:
        raise RefusedError(f"the trace has more than {STEPS} steps")
    if not all(str(number).isdecimal() and int(number) != INPUT for number in trace["captured"]):
        raise RefusedError("the trace captures tensors under names that are not numbers")
    for step in trace["steps"]:
        _check_step(step)


def _check_step(step: Any) -> None:
    launch = {"kernel": int, "grid": list, "arguments": dict, "warps": int}
    operator = {"operator": str, "arguments": list, "keywords": dict, "results": list}
    for kind in (launch, operator):
        if isinstance(step, dict) and all(isinstance(step.get(key), type_) for key, type_ in kind.items()):
            results = step.get("results", [])
            if len(step) == len(kind) and all(type(number) is int for number in results):
                return
    raise RefusedError(f"a step of the trace is malformed: {str(step)[:100]}")


def _numbers(value: Any) -> list[int]:
    """Return the numbers of tensors in the encoded arguments or the results of a step."""
    if isinstance(value, list):
        return [n for item in value for n in ([item] if type(item) is int else _numbers(item))]
    if isinstance(value, dict):
        own = [value["tensor"]] if type(value.get("tensor")) is int and len(value) == 1 else []
        return own + [n for item in value.values() for n in _numbers(item)]
    return []
