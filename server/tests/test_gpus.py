"""Sessions are spread over the GPUs that are for sessions, and scorings have another, by made lists of GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from re_bench.errors import UsageError
from re_bench.gpu import state
from re_bench.gpu.devices import dedicate_gpu
from re_bench.gpu.state import Gpu
from re_bench_server.queues import SessionGpus, plan_gpus

GPUS = [Gpu(index, "NVIDIA H200", f"GPU-{index}", None, 3201.0, 6144) for index in range(4)]


def served(*devices: str) -> Any:
    return [SimpleNamespace(profile=SimpleNamespace(device=device)) for device in devices]


def test_sessions_are_spread_and_no_one_has_the_gpu_of_scorings() -> None:
    gpus = SessionGpus(dedicate_gpu(GPUS[:3]))
    assert [gpus.assign(name) for name in "abcda"] == ["GPU-0", "GPU-1", "GPU-0", "GPU-1", "GPU-0"]
    gpus.release("b")
    gpus.release("d")
    gpus.release("d")
    assert [gpus.assign(name) for name in "ef"] == ["GPU-1", "GPU-1"]
    assert gpus.record() == {"scoring": "GPU-2", "sessions": {"GPU-0": 2, "GPU-1": 2}}


def test_with_one_gpu_all_share_it() -> None:
    gpus = SessionGpus(dedicate_gpu(GPUS[:1], "0"))
    assert [gpus.assign(name) for name in "ab"] == ["GPU-0", "GPU-0"]
    assert gpus.record() == {"scoring": "GPU-0", "sessions": {"GPU-0": 2}}


def test_the_operator_chooses_the_gpu_of_scorings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "identify_all", lambda: GPUS[:2])
    plan = plan_gpus(served("cpu", "cuda"), "0")
    assert plan is not None
    assert (plan.timed, plan.other) == (("GPU-0",), ("GPU-1",))
    assert plan_gpus(served("cpu"), None) is None
    for devices, message in ((("cuda",), "no such GPU here; give the index"), (("cpu",), "no task is served in")):
        with pytest.raises(UsageError, match=f"--scoring-gpu 7: .*{message}"):
            plan_gpus(served(*devices), "7")
