"""What a submission answers: its process is asked for programs here, batch by batch; nothing it says is believed."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.sandbox.deadline import counted_as_untrusted
from re_bench.sandbox.untrusted import SubmissionFaultError
from re_bench_gateway import SessionLimits, Settings, models_of, serving
from rust_codecontests.dataset import without_hidden_tests
from rust_codecontests.judge.toolchain import find_toolchain
from rust_codecontests.load_clock import LoadClock
from rust_codecontests.model_calls import read_calls
from rust_codecontests.profiles import SOURCE_BYTES, model_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from re_bench.sandbox.untrusted import Reply, Untrusted
    from re_bench.scoring.score import Job
    from re_bench_gateway import Gateway, Usage
    from rust_codecontests.dataset import Problem
    from rust_codecontests.model_calls import ModelCall
    from rust_codecontests.profiles import ProfileSettings

MODULE = "solve_code_contests_rust"
OUT_OF_TIME = "out of time"
FAILURES = ("exception", "not a string", "not Unicode text", OUT_OF_TIME, "too long")
"""What the harness may say went wrong with a problem."""
ENDED, MALFORMED = "process ended", "malformed reply"
"""What may have gone wrong with its whole batch."""
NOT_THE_MODELS = "not the model's"
"""What the scorer says of a program that did not come out of the model."""
MAX_REQUEST_BYTES = 256 << 10
"""Longest request to the model: many times its context."""
_GRACE_S = 10.0
_LATE_S = 2.0
_STEP_S = 1.0
_TEXT = 500
_OF_IMAGES = "/opt/venv/bin"
"""Where the task's image has Python with the task's packages, for the sandbox ``container``."""


@dataclass(frozen=True)
class Answer:
    """What a submission answered to one problem: a program, or why there is none."""

    source: str | None
    failure: str = ""
    """One of a few fixed words, which its author may read."""
    text: str = ""
    """In the submission's own words, which its author may not read: it could put the problem there."""


def collect_answers(
    job: Job, profile: ProfileSettings, problems: Sequence[Problem]
) -> tuple[list[Answer], Usage, list[ModelCall]]:
    """Return the submission's answers to all problems, in order, what it has used of the model, and the model's calls.

    The gateway's log is kept in the scoring's records.

    Raises:
        InvalidSubmissionError: if the module cannot be imported, before any problem is shown to it.
        UsageError: without Rust, or a key for the model.
        ReBenchError: if the model's server answered no call at all.
    """
    log = job.records / "calls.jsonl"
    assert job.task.manifest.model is not None
    settings = Settings(
        upstream=profile.upstream(job.task, job.profile_name, job.staged.sha256),
        models=models_of(job.task.manifest.model, job.task.chat_model),
        budget=profile.budget,
        log=log,
        max_body_bytes=MAX_REQUEST_BYTES,
        limits=SessionLimits(log_bytes=profile.log_bytes),
    )
    with serving(settings) as gateway:
        answers = list(_in_batches(job, profile, gateway, problems))
        usage = gateway.usage()
        with counted_as_untrusted():
            calls = read_calls(log)
        if settings.upstream.kind == "openai" and usage.failed and not usage.requests:
            _check_model(gateway, model_name(job.task))
    return answers, usage, calls


def _check_model(gateway: Gateway, model: str) -> None:
    """Make a call of our own: a submission's calls may all have failed because they are such as no server answers.

    Raises:
        ReBenchError: if it too is not answered.
    """
    import httpx2  # noqa: PLC0415 - they take a second to import, and hardly a scoring needs them
    import openai  # noqa: PLC0415

    transport = httpx2.HTTPTransport(uds=str(gateway.socket))
    with openai.OpenAI(
        api_key=gateway.token,
        base_url="http://gateway/v1",
        http_client=openai.DefaultHttpxClient(transport=transport),
        max_retries=0,
    ) as client:
        try:
            client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}], max_tokens=1)
        except openai.OpenAIError:
            raise ReBenchError(
                "the model's server answered no call; are OPENAI_API_KEY and OPENAI_BASE_URL right? And does it offer "
                f"{model}?"
            ) from None


def _in_batches(job: Job, profile: ProfileSettings, gateway: Gateway, problems: Sequence[Problem]) -> Iterator[Answer]:
    """Yield the answers to all problems. Each batch gets a process of its own."""
    for start in range(0, len(problems), profile.batch):
        batch = problems[start : start + profile.batch]
        job.progress(f"problems {start + 1} to {start + len(batch)} of {len(problems)}")
        with ExitStack() as stack:
            process = stack.enter_context(job.untrusted("harness/solver.py", **_sandbox_options(profile, gateway)))
            module = {"directory": str(job.submission), "module": MODULE}
            try:
                process.call("load", module, timeout_s=profile.load_s)
            except SubmissionFaultError as fault:
                if start == 0:
                    raise
                # By now it has seen problems, so that its words must not reach its author.
                yield from [Answer(None, ENDED, str(fault)[:_TEXT])] * len(batch)
                continue
            request = {
                "problems": [without_hidden_tests(problem) for problem in batch],
                "socket": str(gateway.socket),
                "token": gateway.token,
                "streams": profile.streams,
            }
            try:
                reply = _solved(process, request, profile.batch_s)
            except SubmissionFaultError as fault:
                yield from [Answer(None, ENDED, str(fault)[:_TEXT])] * len(batch)
                continue
        yield from _answers_in(reply.value, reply.outputs) if reply else [Answer(None, OUT_OF_TIME)] * len(batch)


def _solved(process: Untrusted, request: dict[str, Any], batch_s: float) -> Reply | None:
    """Have a batch solved in so many seconds by a :class:`LoadClock`, which stands while other programs run.

    None if its process did not let itself be interrupted in time.
    """
    clock = LoadClock()
    process.call("begin", request, timeout_s=batch_s + _GRACE_S)
    while (left_s := batch_s - clock.seconds()) > 0:
        step = {"seconds": min(left_s, _STEP_S)}
        if process.call("work", step, timeout_s=left_s + _GRACE_S).value is True:
            break
    reply = process.call("answers", outputs=[SOURCE_BYTES] * len(request["problems"]), timeout_s=_GRACE_S)
    return reply if clock.seconds() <= batch_s + _LATE_S else None


def _sandbox_options(profile: ProfileSettings, gateway: Gateway) -> dict[str, Any]:
    """Return what the process sees beside the submission: the gateway's socket and Rust, which it may use."""
    sysroot = find_toolchain().sysroot
    search = f"{Path(sys.prefix, 'bin')}:{sysroot / 'bin'}:{_OF_IMAGES}:/usr/local/bin:/usr/bin:/bin"
    visible = (gateway.socket, *([] if sysroot == Path("/usr") else [sysroot]))
    return {"also": visible, "environment": {"PATH": search, "RUST_EDITION": profile.edition}}


def _answers_in(reply: Any, outputs: Sequence[bytes]) -> list[Answer]:
    """Return the answers to a batch; one malformed answer makes all of them worthless."""
    malformed = [Answer(None, MALFORMED)] * len(outputs)
    if not isinstance(reply, list) or len(reply) != len(outputs):
        return malformed
    answers = [_answer_in(entry, output) for entry, output in zip(reply, outputs, strict=True)]
    return malformed if None in answers else [answer for answer in answers if answer]


def _answer_in(entry: Any, output: bytes) -> Answer | None:
    """Return an answer, or None if it is malformed."""
    if not isinstance(entry, dict):
        return None
    size, failure = entry.get("bytes"), entry.get("failed")
    if failure is not None:
        return Answer(None, failure, str(entry.get("text", ""))[:_TEXT]) if failure in FAILURES else None
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(output):
        return None
    try:
        return Answer(output[:size].decode())
    except UnicodeDecodeError:
        return Answer(None, "not Unicode text")
