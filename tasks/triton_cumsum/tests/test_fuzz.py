"""Whatever a solution says, and whatever its process answers, the score is valid or invalid with a reason."""

from __future__ import annotations

import argparse
import copy
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from re_bench.sandbox.untrusted import Untrusted

from re_bench.errors import InvalidSubmissionError
from re_bench.limits import Limits
from re_bench.sandbox import open_backend
from re_bench.sandbox.spec import Backend, SandboxSpec
from re_bench.scoring import score as core
from re_bench.task.discovery import open_task
from triton_cumsum.modelled import scoring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from re_bench.scoring.score import Job, Measured, Score

TASK = Path(__file__).resolve().parents[1]
HARNESS = TASK / "triton_cumsum" / "harness"
BASELINE = (TASK / "baseline" / "solution.py").read_bytes()
AROUND = SandboxSpec(
    environment={"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
    limits=Limits(wall_s=110, memory_mib=3072, processes=64, file_mib=64),
)
MESSAGE = 5000
fuzz = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))


RETURNED = ["None", "x", "x.tolist()", "x[:0]", "x.float()", "'y'", "lambda: x", "{}", "x.numpy()", "torch.empty(0)"]
BODIES = st.sampled_from(
    [
        *(f"return {value}" for value in RETURNED),
        "raise SystemExit",
        "raise KeyboardInterrupt('\\x1b[2J')",
        "raise Exception('\\ud800\\0')",
        "raise type('E', (Exception,), {'__str__': lambda e: 1 / 0})",
        "yield x",
        "return prefix_sum(x)",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import sys; sys.modules.clear()",
        "import sys; sys.setrecursionlimit(1)",
        "import os; os.closerange(0, 99)",
        "import os; os._exit(7)",
    ]
)
SOURCES = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    BODIES.map(lambda body: f"import torch\ndef prefix_sum(x):\n    {body}\n".encode()),
    st.integers(0, len(BASELINE)).map(lambda end: BASELINE[:end]),
    st.tuples(st.integers(0, len(BASELINE)), st.binary(max_size=3)).map(
        lambda edit: BASELINE[: edit[0]] + edit[1] + BASELINE[edit[0] + 1 :]
    ),
    st.sampled_from([b"\xef\xbb\xbf", b"# coding: utf-7\n", b"# coding: rot13\n", b"\xff\xfe"]).map(
        lambda start: start + BASELINE
    ),
    st.sampled_from([b"prefix_sum = 1", b"import nowhere", b"x = " + b"9" * 5000]),
)
REPEATED = st.sampled_from([(b"(", 10_000), (b"-", 100_000), (b"\0", 1 << 20), (b"if 1:\n", 5000)])
BESIDE = st.dictionaries(
    st.sampled_from(["torch.py", "triton", "__init__.py", "__pycache__", "a\nb", "-rf", "é"]), SOURCES, max_size=3
)


# The scorer of the task, and the processes that it asks, kept running from one example to the next.

SHARED = """
import sys
from triton_cumsum.harness import cpu_runner
def load(args, inputs, outputs):
    for name in [name for name in sys.modules if name.partition(".")[0] == "solution"]:
        del sys.modules[name]
    sys.path[:] = [path for path in sys.path if "submission" not in path]
    return cpu_runner.load(args, inputs, outputs)
run = cpu_runner.run
"""


@pytest.fixture(scope="module")
def backend() -> Backend:
    return open_backend("bubblewrap")


class Kept:
    """An untrusted process that is started again after an example ended it."""

    def __init__(self, backend: Backend, harness: Path, surroundings: SandboxSpec) -> None:
        self.start: Callable[[], Untrusted] = lambda: Untrusted(backend, harness, surroundings)
        self.process: Untrusted | None = None

    def call(self, name: str, args: dict[str, Any], **options: Any) -> Any:
        if self.process is None:
            self.process = self.start()
        try:
            return self.process.call(name, args, **options)
        except InvalidSubmissionError as fault:
            if re.search(r"the call of \w+ failed|broken", str(fault)):
                self.close()
            raise

    def close(self) -> None:
        if self.process is not None:
            self.process.__exit__()
            self.process = None


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("root")
    for directory in (path, *list(path.parents)[:3]):
        directory.chmod(0o755)  # the sandbox runs as another user
    return path


@pytest.fixture(scope="module")
def player(backend: Backend, root: Path) -> Iterator[Kept]:
    """The task's player with all submissions of this file before its eyes, so that one process can load them all."""
    package = root / "triton_cumsum"
    (package / "harness").mkdir(parents=True)
    for path in HARNESS.glob("*.py"):
        (package / "harness" / path.name).write_bytes(path.read_bytes())
    (package / "__init__.py").touch()
    (package / "harness" / "shared.py").write_text(SHARED)
    around = SandboxSpec({str(root): root}, {}, AROUND.environment, limits=AROUND.limits)
    kept = Kept(backend, package / "harness" / "shared.py", around)
    yield kept
    kept.close()


@pytest.fixture(scope="module")
def meter(backend: Backend) -> Iterator[Kept]:
    kept = Kept(backend, HARNESS / "meter.py", AROUND)
    yield kept
    kept.close()


def check(score: Score) -> None:
    """Assert that a score is a verdict with a reason, which every reader of JSON accepts."""
    assert score.status in {"valid", "invalid"}, score.message
    assert score.message.strip()
    assert len(score.message) <= MESSAGE
    assert "Traceback (most recent call last)" not in score.message
    assert json.loads(score.to_json(), parse_constant=pytest.fail)["message"] == score.message


@pytest.fixture
def scored(player: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what scores a tree: staging and verdict are the core's, the player is shared, one small input is tried."""
    monkeypatch.setattr(tempfile, "tempdir", str(root))
    x = np.array([3, -1, 0, 5, 2, -4], dtype=np.int32)

    def measure(job: Job) -> Measured:
        player.call("load", {"directory": str(job.submission)}, timeout_s=10)
        scoring.record(player, x, "a small input")
        return core.Measured(0.0, "right")

    def run(files: dict[str, bytes]) -> Score:
        with tempfile.TemporaryDirectory() as directory:
            Path(directory).chmod(0o755)
            for name, content in files.items():
                (Path(directory) / name).write_bytes(content)
            return core.score(open_task(TASK), measure, Path(directory), profile="cpu", sandbox="bubblewrap")

    return run


@settings(fuzz, max_examples=60)
@given(source=SOURCES | REPEATED.map(lambda pair: pair[0] * pair[1]), beside=BESIDE)
def test_any_source_is_scored(scored: Any, source: bytes, beside: dict[str, bytes]) -> None:
    check(scored({**beside, "solution.py": source}))


def test_the_shared_player_accepts_what_is_right(scored: Any) -> None:
    assert scored({"solution.py": BASELINE}).status == "valid"


# What the process of a submission, or a meter that was overcome, may answer.

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=8)
)
KEYS = st.sampled_from(["value", "error", "trace", "steps", "name", "kind", "bytes", "program_bytes", "flops"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
COUNTS = st.one_of(st.integers(-1, 10**400), st.floats(), JSON)
STEPS = st.fixed_dictionaries({"name": JSON, "kind": JSON, "bytes": COUNTS, "program_bytes": COUNTS, "flops": COUNTS})
VALUES = st.one_of(
    JSON,
    st.fixed_dictionaries({"trace": JSON}),
    st.fixed_dictionaries({"steps": st.lists(STEPS, max_size=2) | JSON}),
)


class Answering:
    """Stands in for an untrusted process: right outputs, any value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def call(self, *_arguments: Any, outputs: list[int], **_options: Any) -> Any:
        return argparse.Namespace(value=self.value, outputs=tuple(bytes(size) for size in outputs))


def reason_of(function: Any, *arguments: Any) -> str:
    """Call ``function``; return why it refused the submission, or nothing. Anything else it raises is a failure."""
    try:
        function(*arguments)
    except InvalidSubmissionError as fault:
        reason = str(fault)
    else:
        return ""
    assert reason.strip()
    return reason


@settings(fuzz, max_examples=200)
@given(value=VALUES)
def test_any_value_of_a_reply_is_accepted_or_refused(value: Any) -> None:
    x = np.zeros(4, dtype=np.int32)
    if not reason_of(scoring.record, Answering(value), x, "zeros"):
        assert isinstance(value["trace"], str)
    if not reason_of(scoring.replay, Answering(value), x, "{}", "zeros"):
        assert all(float(step[key]) >= 0 for step in value["steps"] for key in ("bytes", "program_bytes", "flops"))


FRAME = """
import gc, os, socket
def {name}(args, inputs, outputs):
    channel = next(item for item in gc.get_objects() if isinstance(item, socket.socket))
    channel.sendall({frame})
    os._exit(0)
"""
DEEP = b'{"value": ' + b"[" * 900 + b"]" * 900 + b"}"
TEXTS = st.one_of(
    st.dictionaries(KEYS, JSON, max_size=2).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40),
    st.sampled_from(
        [DEEP, b'{"value": {"trace": 1e999}}', b'{"error": ["\\ud800"]}', b'{"error": ' + b"9" * 4000 + b"}"]
    ),
)
FRAMES = st.one_of(
    TEXTS.map(lambda text: len(text).to_bytes(4, "big") + bytes(4) + text),
    TEXTS.map(lambda text: (len(text) + 9).to_bytes(4, "big") + bytes(4) + text),
    st.binary(max_size=40),
)


@settings(fuzz, max_examples=25)
@given(frame=FRAMES, name=st.sampled_from(["run", "replay"]))
def test_any_bytes_on_the_channel_are_accepted_or_refused(
    backend: Backend, root: Path, frame: bytes, name: str
) -> None:
    harness = root / "answering" / "harness.py"
    harness.parent.mkdir(exist_ok=True)
    harness.write_text(FRAME.format(name=name, frame=frame))
    x = np.zeros(4, dtype=np.int32)
    with Untrusted(backend, harness, SandboxSpec(limits=Limits(wall_s=20))) as process:
        if name == "run":
            reason_of(scoring.record, process, x, "zeros")
        else:
            reason_of(scoring.replay, process, x, "{}", "zeros")


# What a trace may hold: mutations of a real one, and of a small one with a kernel.

SOURCE = """
def k(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
"""
TRACE: dict[str, Any] = {
    "captured": {"9": {"dtype": "int32", "shape": [1], "data": "AAAAAA=="}},
    "functions": [{"name": "k", "source": SOURCE, "bindings": {"tl": {"module": "triton.language"}}}],
    "steps": [
        {"operator": "aten::empty_like.default", "arguments": [{"tensor": 0}], "keywords": {}, "results": [1]},
        {"operator": "aten::add.Tensor", "arguments": [{"tensor": 0}, {"tensor": 9}], "keywords": {}, "results": [2]},
        {"operator": "aten::cumsum.default", "arguments": [{"tensor": 2}, 0], "keywords": {}, "results": [3]},
        {
            "kernel": 0,
            "grid": [4, 1, 1],
            "arguments": {"x": {"tensor": 0}, "y": {"tensor": 1}, "n": 64, "B": {"constexpr": 16}},
            "warps": 4,
        },
    ],
    "result": 1,
}
OPERATORS = """
add.Tensor mul.Tensor where.self cumsum.default sum.dim_IntList as_strided.default unbind.int split.Tensor mm.default
index.Tensor index_select.default gather.default embedding.default cat.default expand.default view.dtype fill_.Scalar
copy_.default add.out zeros.out empty.out arange.start_out _to_copy.default repeat.default flip.default take.default
_local_scalar_dense.default bmm.default baddbmm.default div.Tensor bitwise_left_shift.Tensor_Scalar unfold.default
select.t any.str split.str scalar_tensor.default constant_pad_nd.default polygamma.default roll.default max.dim
""".split()  # noqa: SIM905 - forty words read better than forty lines
SNIPPETS = """
__import__ .handle .data .fn ( ) [ ] : = tl. tl.load(x) tl.store(y,1) -1 1e999 'a'*64 lambda yield await while for def
class x.dtype tl.dtype .to(tl.pointer_type(tl.int8)) >> << * ** @ ; 99999999999 {} f'' None \ud800 \0 \\
""".split(" ")  # noqa: SIM905 - as above; the line breaks are snippets too
PIECES = st.one_of(
    JSON,
    st.sampled_from(
        [{"tensor": 0}, {"tensor": 1}, {"tensor": -1}, {"constexpr": 1}, {"float": "nan"}, {"dtype": "bool"}]
    ),
    st.sampled_from([-1, 0, 1, 3, 7, 2**31, 2**63, 2**64, 10**30, [], [1, 2], {}, "int32", "cpu", [1 << 40, 1 << 40]]),
    st.sampled_from([f"aten::{name}" for name in OPERATORS]),
)
CHANGES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), min_size=1, max_size=5), st.sampled_from(["set", "drop", "add", "edit"]), PIECES
    ),
    min_size=1,
    max_size=3,
)


def changed(trace: Any, route: list[int], how: str, piece: Any) -> None:
    """Follow ``route`` from key to key and change what is there."""
    for index, turn in enumerate(route):
        if not isinstance(trace, dict | list) or not trace:
            return
        key = list(trace)[turn % len(trace)] if isinstance(trace, dict) else turn % len(trace)
        last = index == len(route) - 1 or not isinstance(trace[key], dict | list) or not trace[key]
        if last:
            change(trace, key, how, piece)
            return
        trace = trace[key]


def change(holder: Any, key: Any, how: str, piece: Any) -> None:
    if how == "drop":
        del holder[key]
    elif how == "edit" and isinstance(holder[key], str):
        snippet, at = SNIPPETS[len(str(piece)) % len(SNIPPETS)], len(repr(piece)) * 7 % (len(holder[key]) + 1)
        holder[key] = holder[key][:at] + snippet + holder[key][at:]
    elif how == "add" and isinstance(holder, list):
        holder.insert(key, piece)
    else:
        holder[key] = piece


def replayed(meter: Kept, text: str) -> None:
    """Replay; a refusal must be one of the meter's own, no exception that slipped through and no crash."""
    x = np.arange(-32, 32, dtype=np.int32)
    reason = reason_of(scoring.replay, meter, x, text, "fuzz")
    assert not re.match(r"(?!IndexError)\w+(Error|Exception|Exit|Interrupt): ", reason), reason
    assert not re.match(r"the call of \w+ failed", reason), reason


@settings(fuzz, max_examples=300)
@given(changes=CHANGES)
def test_any_trace_is_replayed_or_refused(meter: Kept, changes: list[tuple[list[int], str, Any]]) -> None:
    trace = copy.deepcopy(TRACE)
    for route, how, piece in changes:
        changed(trace, route, how, copy.deepcopy(piece))
    replayed(meter, json.dumps(trace))


@settings(fuzz, max_examples=60)
@given(text=st.one_of(st.text(max_size=30), JSON.map(json.dumps), st.sampled_from(["1e999", "9" * 5000])))
def test_any_text_for_a_trace_is_refused(meter: Kept, text: str) -> None:
    replayed(meter, text)


@pytest.mark.parametrize("piece", ["[", '{"a":', "9", "\0", "\ud800"])
def test_any_long_text_for_a_trace_is_refused(meter: Kept, piece: str) -> None:
    replayed(meter, piece * 100_000)
    replayed(meter, piece * 2_000_000)


def test_the_trace_that_is_changed_is_one_that_replays(meter: Kept) -> None:
    x = np.arange(64, dtype=np.int32)
    reply = meter.call("replay", {"trace": json.dumps(TRACE), "length": 64}, inputs=[x], outputs=[x.nbytes])
    assert np.array_equal(np.frombuffer(reply.outputs[0], np.int32), x)


SOURCES_WITH_REASONS = {
    "null bytes": (b"\0" * 9, "null bytes"),
    "no text": (b"\xff\xfe\xfd", "imported: SyntaxError"),
    "odd reason": (b"raise Exception('\\ud800\\x1b[2J\\0')", "imported: Exception"),
    "no function": (b"prefix_sum = 1", "defines no function"),
}


@pytest.mark.parametrize("case", SOURCES_WITH_REASONS)
def test_a_source_that_cannot_be_used_gets_its_reason(scored: Any, case: str) -> None:
    source, reason = SOURCES_WITH_REASONS[case]
    score = scored({"solution.py": source})
    check(score)
    assert score.status == "invalid"
    assert re.search(reason, score.message)
