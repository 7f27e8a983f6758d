"""Settings of each profile."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.data.instances import secret_seed
from re_bench.errors import UsageError
from re_bench_gateway import Budget, OpenAICompatible, PlugIn
from rust_codecontests.dataset import held_out_split

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench.task.discovery import TaskFolder

MODEL = "gpt-3.5-turbo-0125"
"""The original's model, whose name submissions also use for any other one."""
SOURCE_BYTES = 64 << 10
"""Maximum program size, in bytes of UTF-8, as in contests."""


@dataclass(frozen=True)
class ProfileSettings:
    """One profile."""

    upstream: Callable[[TaskFolder, str, str], OpenAICompatible | PlugIn]
    """Function of the task, the profile's name and the submission's hash that returns the model; raises UsageError if
    it is
    unavailable."""
    edition: str
    """Edition of Rust."""
    budget: Budget
    """Budget for all problems together."""
    label: str = "{model}: "
    """Prefix of every message; ``{model}`` is the real model's name."""
    batch: int = 20
    """Problems solved at the same time."""
    batch_s: float = 60.0
    """Wall-clock seconds for a batch, without other programs' share."""
    load_s: float = 30.0
    """Wall-clock seconds for importing the module."""
    margin_s: float = 60.0
    """Seconds before the scorer's time limit in which no compiler or test is started, and running ones have to end."""
    log_bytes: int = 32 << 20
    """Maximum size of the gateway's log, several times that of the budget's tokens; then no more calls are made."""
    streams: int = 50
    """Initial value of the semaphore: calls at a time."""


def stand_in(task: TaskFolder, profile: str, submission: str = "") -> PlugIn:
    """Return the stand-in model of the profile's held-out problems.

    Its abilities are fixed, so that scores are comparable. Its answers depend on a secret, so that no submission can
    compute which will be right, and on the submission's hash: the same submission has the same score, and another one
    does not learn from it which questions get right answers.
    """
    secret = secret_seed(f"rust_codecontests stand-in answers {submission}")
    arguments = {"seed": 0, "secret": secret, "splits": [held_out_split(profile)]}
    return PlugIn(factory="rust_codecontests.pool:answer", path=task.directory, arguments=arguments)


def openai_compatible(task: TaskFolder, profile: str, _submission: str = "") -> OpenAICompatible:
    """Return OpenAI's API, or the server at ``OPENAI_BASE_URL``, with the key of the scorer's own environment.

    Raises:
        UsageError: without a key.
    """
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        raise UsageError(
            f"profile {profile} asks {model_name(task)} at OpenAI: set OPENAI_API_KEY, and OPENAI_BASE_URL for "
            "another server that offers it (any text will do where it needs no key); or use --profile cpu, which has a "
            "stand-in for the model"
        )
    address = os.environ.get("OPENAI_BASE_URL")
    return OpenAICompatible(key=key, base_url=address) if address else OpenAICompatible(key=key)


def model_name(task: TaskFolder) -> str:
    """Return the name of the real model: the manifest's, or the chosen one."""
    assert task.manifest.model is not None
    return task.manifest.model.name


PROFILES = {
    "cpu": ProfileSettings(
        upstream=stand_in,
        edition="2021",
        budget=Budget(dollars=1.0, tokens=750_000, requests=600),
        label="stand-in model: ",
    ),
    "cpu-test2": ProfileSettings(
        upstream=stand_in,
        edition="2021",
        budget=Budget(dollars=0.5, tokens=375_000, requests=300),
        label="stand-in model: ",
    ),
    "paper": ProfileSettings(
        upstream=openai_compatible,
        edition="2018",
        budget=Budget(dollars=10.0, tokens=10_000_000, requests=2_500),
        margin_s=120.0,
        log_bytes=128 << 20,
    ),
}
"""The profiles by name; batches, their time and the edition of ``paper`` are the original's."""
