"""An untrusted process answers questions; whatever else it does becomes a reason, never a crash of ours."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import re_bench
from re_bench.guest import ipc
from re_bench.limits import Limits
from re_bench.sandbox.spec import SandboxSpec
from re_bench.sandbox.untrusted import SubmissionFaultError, Untrusted

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend

SPEC = SandboxSpec(limits=Limits(wall_s=100, memory_mib=512, processes=40))
ECHO = "def echo(args, inputs, outputs):\n    for a, b in zip(inputs, outputs): b[:] = a\n    return args\n"
CHANNEL = "import gc, socket\nchannel = next(o for o in gc.get_objects() if isinstance(o, socket.socket))\n"

json_values = st.recursive(st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(), st.lists, max_leaves=5)


def ask(backend: Backend, harness: Path, name: str = "go", timeout_s: float | None = None) -> object:
    with Untrusted(backend, harness, SPEC) as process:
        return process.call(name, timeout_s=timeout_s).value


def test_values_and_arrays_go_in_and_come_back(backend: Backend, harness: Callable[[str], Path]) -> None:
    data = np.arange(1_000_003, dtype=np.int32)
    args = {"text": "ünï", "list": [1, None, 2.5]}
    with Untrusted(backend, harness(ECHO), SPEC) as process:
        reply = process.call("echo", args, inputs=[data, b""], outputs=[data.nbytes, 0])
        again = process.call("echo", {}, inputs=[b"abc"], outputs=[3])
    assert reply.value == args
    assert np.array_equal(np.frombuffer(reply.outputs[0], np.int32), data)
    assert (reply.outputs[1], again.outputs) == (b"", (b"abc",))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('too short')", "ValueError: too short"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import os; os._exit(0)", "the process ended with exit status 0"),
        ("import os, sys; print('my last words', file=sys.stderr, flush=True); os._exit(3)", "my last words"),
        ("import os; os.kill(os.getpid(), 11)", "the process ended with signal 11"),
        ("inputs[0][0] = 1", "TypeError: cannot modify read-only memory"),
        ("return object()", "the process ended"),
        ("return float('nan')", "the process ended"),
        ("return 'x' * 5_000_000", "longer than the"),
        (f"{CHANNEL}channel.sendall(b'\\0\\0\\0\\2\\0\\0\\0\\0[]'); return 1", "no JSON object"),
        (f"{CHANNEL}channel.sendall(b'\\0\\0\\0\\3\\0\\0\\0\\0NaN'); return 1", "no JSON"),
        (f"{CHANNEL}channel.sendall(b'\\0\\0\\0\\2\\0\\0\\0\\7{{}}'); return 1", "file descriptors"),
        (f"{CHANNEL}channel.close(); import time; time.sleep(60)", "failed"),
    ],
)
def test_a_fault_becomes_a_reason(backend: Backend, harness: Callable[[str], Path], body: str, reason: str) -> None:
    lines = body.splitlines()
    source = "def go(args, inputs, outputs):\n" + "".join(f"    {line}\n" for line in lines)
    with (
        Untrusted(backend, harness(source), SPEC) as process,
        pytest.raises(SubmissionFaultError) as caught,
    ):
        process.call("go", inputs=[b"x"])
    assert reason in str(caught.value)


def test_a_deeply_nested_answer_is_no_crash_of_ours(backend: Backend, harness: Callable[[str], Path]) -> None:
    text = "b'[' * 500_000"
    send = f"t = {text}\n    channel.sendall(struct.pack('>II', len(t), 0) + t)"
    source = f"import struct\n{CHANNEL}def go(a, i, o):\n    {send}\n"
    with pytest.raises(SubmissionFaultError, match="no JSON"):
        ask(backend, harness(source))


def test_a_call_that_hangs_is_stopped(backend: Backend, harness: Callable[[str], Path]) -> None:
    source = "import time\ndef go(a, i, o):\n    time.sleep(60)\n"
    with pytest.raises(SubmissionFaultError, match=r"the call of go took longer than 0\.5 s"):
        ask(backend, harness(source), timeout_s=0.5)


def test_a_paused_process_stands_still_with_all_its_children(backend: Backend, harness: Callable[[str], Path]) -> None:
    spinning = "import os\nif os.fork() == 0:\n    while True: pass\ndef go(args, inputs, outputs): return args\n"
    with Untrusted(backend, harness(spinning), SPEC) as process:
        assert process.call("go", {"n": 1}).value == {"n": 1}
        with process.paused():
            before = process.cpu_seconds()
            time.sleep(0.5)
            paused = process.cpu_seconds() - before
        assert process.call("go", {"n": 2}).value == {"n": 2}
        deadline = time.monotonic() + 60 * (backend.name != "container")
        while (running := process.cpu_seconds() - before) <= paused and time.monotonic() < deadline:
            time.sleep(0.05)
    assert paused <= 0.03  # three ticks
    if backend.name != "container":  # whose processes are not ours to pause, or to count
        assert running > paused


def test_a_harness_that_cannot_be_loaded_says_why(backend: Backend, harness: Callable[[str], Path]) -> None:
    with pytest.raises(SubmissionFaultError, match="ModuleNotFoundError: No module named 'nowhere'"):
        ask(backend, harness("import nowhere"))


def test_outputs_are_of_the_size_asked_for_whatever_happens(backend: Backend, harness: Callable[[str], Path]) -> None:
    source = (
        "import os\n"
        "def go(args, inputs, outputs):\n"
        "    tried = []\n"
        "    for name in os.listdir('/proc/self/map_files') if os.access('/proc/self/map_files', os.R_OK) else []:\n"
        "        try: os.truncate('/proc/self/map_files/' + name, 1 << 30)\n"
        "        except OSError as error: tried.append(error.errno)\n"
        "    outputs[0][:] = b'wxyz'\n"
        "    return 1\n"
    )
    with Untrusted(backend, harness(source), SPEC) as process:
        assert process.call("go", outputs=[4]).outputs == (b"wxyz",)


def test_the_scorer_takes_no_file_descriptors(backend: Backend, harness: Callable[[str], Path]) -> None:
    source = (
        f"import array, socket, struct\n{CHANNEL}"
        "def go(a, i, o):\n"
        "    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))\n"
        "    channel.sendmsg([struct.pack('>II', 11, 0) + b'{\"value\":1}'], [rights])\n"
        "    return 2\n"
    )
    with Untrusted(backend, harness(source), SPEC) as process:
        assert process.call("go").value == 1


def test_the_process_sees_its_harness_and_nothing_else_of_ours(
    backend: Backend, harness: Callable[[str], Path]
) -> None:
    source = (
        "import glob, os\n"
        "def go(a, i, o):\n"
        "    return [name for place in os.environ['PLACES'].split(':') for name in glob.glob(place + '/*')]\n"
    )
    places = [str(parent) for parent in Path(re_bench.__file__).resolve().parents[:3]]
    spec = SandboxSpec(environment={"PLACES": ":".join(places)}, limits=SPEC.limits)
    with Untrusted(backend, harness(source), spec) as process:
        assert process.call("go").value == []


@given(st.dictionaries(st.text(), json_values))
def test_messages_arrive_as_they_were_sent(message: dict[str, object]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ipc.send(ours, message)
        assert ipc.receive(theirs, 1 << 20, accept_descriptors=False) == (message, [])


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_frame_error(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        try:
            message, _none = ipc.receive(theirs, 1 << 10, accept_descriptors=False)
        except ipc.FrameError:
            return
        assert isinstance(message, dict)


def test_a_process_that_stops_reading_does_not_block_the_scorer(
    backend: Backend, harness: Callable[[str], Path]
) -> None:
    source = (
        "import struct, time\n"
        f"{CHANNEL}"
        "def go(a, i, o):\n"
        "    channel.sendall(struct.pack('>II', 11, 0) + b'{\"value\":1}')\n"
        "    time.sleep(60)\n"
    )
    with Untrusted(backend, harness(source), SPEC) as process:
        assert process.call("go").value == 1
        with pytest.raises(SubmissionFaultError, match=r"the call of go took longer than 1 s"):
            process.call("go", {"much": "x" * 10_000_000}, timeout_s=1)


def test_an_answer_that_trickles_in_is_stopped_in_time(backend: Backend, harness: Callable[[str], Path]) -> None:
    send = "\n    for c in b'{\"value\": 1}': channel.sendall(bytes([c])); time.sleep(0.4)"
    head = "channel.sendall(struct.pack('>II', 12, 0))"
    source = f"import struct, time\n{CHANNEL}def go(a, i, o):\n    {head}{send}\n"
    with pytest.raises(SubmissionFaultError, match=r"longer than 1 s"):
        ask(backend, harness(source), timeout_s=1)


def test_numbers_beyond_range_and_deep_arguments_are_faults(backend: Backend, harness: Callable[[str], Path]) -> None:
    with pytest.raises(ipc.FrameError, match="beyond the range"):
        ipc.decode(b'{"value": 1e999}')
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with Untrusted(backend, harness(ECHO), SPEC) as process, pytest.raises(SubmissionFaultError, match="asked"):
        process.call("echo", {"deep": deep})


TELLING = """
import os, sys
def start(args, inputs, outputs): return 1
def tell(args, inputs, outputs):
    print("secret 4711", file=sys.stderr, flush=True)
    if args["how"] == "raise": raise ValueError("secret 4711")
    if args["how"] == "exit": os._exit(47)
    while True: pass
"""


@pytest.mark.parametrize("how", ["raise", "exit", "never"])
def test_a_process_that_has_held_out_data_cannot_tell_of_it(
    backend: Backend, harness: Callable[[str], Path], how: str
) -> None:
    with Untrusted(backend, harness(TELLING), SPEC) as process:
        process.call("start", held_out=True)
        with pytest.raises(SubmissionFaultError) as caught:
            process.call("tell", {"how": how}, timeout_s=2 if how == "never" else 60)
    short = "took longer than 2 s" if how == "never" else "failed"
    assert str(caught.value) == f"the call of tell {short}; no more is told, since the process has held-out data"
    assert {"raise": "ValueError: secret 4711", "exit": "exit status 47", "never": "took longer than 2 s"}[how] in (
        caught.value.withheld
    )
