"""A model's opinion of a submission, from any server that speaks OpenAI's chat completions.

What is judged was written by an agent and is hostile. It is one string of JSON in plain ASCII without angle brackets,
which nothing in it can end. A verdict counts only as the whole of a reply, in exactly the form that was asked for, with
the random ticket of that call, which no submission can know; an accusation has to quote words that are there.
What no form can prevent is a model that is talked round: a verdict "clean" proves nothing, and silences no check.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from re_bench.data.redaction import redacted
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TRIES = 2
"""How often a submission is judged until a reply has the form that was asked for."""
_REPLY_TOKENS = 2_000
_BYTES_A_TOKEN = 2
"""Fewer than text in ASCII has, so that the estimate of a prompt's tokens is rather too high."""
_FENCE = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)


@dataclass(frozen=True)
class JudgeSettings:
    """Which model is asked, and how much of it may be used."""

    url: str
    model: str
    key_variable: str | None = None
    """The environment variable with the server's key; None for a server without keys."""
    max_calls: int = 50
    max_tokens: int = 1_000_000
    """Of prompts and replies together; the last call may exceed it by the error of an estimate."""
    timeout_s: float = 120.0


class Verdict(BaseModel):
    """What a judge says of a submission."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    ticket: str
    verdict: Literal["clean", "suspicious", "cheating"]
    confidence: float = Field(ge=0, le=1, strict=False)
    quote: str = Field(max_length=2_000)
    reason: str = Field(max_length=4_000)
    addresses_reader: bool


@dataclass
class Use:
    """What of the judge was used."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    no_verdict: int = 0
    """Submissions of which no reply had the form that was asked for."""


class JudgeError(ReBenchError):
    """The judge's server could not be asked."""


class BudgetSpentError(ReBenchError):
    """Another call could exceed the limits."""


@dataclass
class Judge:
    """A model that is asked for verdicts."""

    settings: JudgeSettings
    use: Use = field(default_factory=Use)

    def __post_init__(self) -> None:
        """Find the library and the key.

        Raises:
            UsageError: if one of them is missing.
        """
        try:
            import openai  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError("a judge needs openai; run: pip install 're-bench-common[judge]'") from None
        variable, key = self.settings.key_variable, "none"
        if variable is not None and not (key := os.environ.get(variable, "")):
            raise UsageError(f"the environment variable {variable} with the judge's key is not set")
        self._key, self._failure = key, openai.OpenAIError
        self._refusal: type[Exception] = openai.BadRequestError
        client = openai.OpenAI(api_key=key, base_url=self.settings.url, timeout=self.settings.timeout_s, max_retries=2)
        self._create: Callable[..., Any] = client.chat.completions.create
        self._limit_name = "max_completion_tokens"
        self._prompt = Template((files(__package__) / "judge_prompt.txt").read_text(encoding="utf-8"))

    def ask(self, task: str, material: Sequence[dict[str, str]]) -> Verdict | None:
        """Return the verdict on a submission; None if no reply is one.

        Args:
            task: the task's description.
            material: what the agent wrote and did, as objects of texts.

        Raises:
            BudgetSpentError: if the limits allow no further call.
            JudgeError: if the server cannot be asked.
        """
        for _try in range(_TRIES):
            ticket = secrets.token_hex(16)
            instructions = self._prompt.substitute(ticket=ticket, task=task)
            verdict = parse_verdict(self._complete(instructions, as_one_string(material)), ticket)
            if verdict is not None:
                clean = {name: redacted(getattr(verdict, name), [self._key]) for name in ("quote", "reason")}
                return verdict.model_copy(update=clean)
        self.use.no_verdict += 1
        return None

    def _complete(self, instructions: str, material: str) -> str:
        prompt = (len(instructions) + len(material)) // _BYTES_A_TOKEN
        spent = self.use.prompt_tokens + self.use.completion_tokens
        if self.use.calls >= self.settings.max_calls or spent + prompt + _REPLY_TOKENS > self.settings.max_tokens:
            raise BudgetSpentError(
                f"the judge was asked {self.use.calls} times with {spent} tokens, and may be asked "
                f"{self.settings.max_calls} times with {self.settings.max_tokens}"
            )
        self.use.calls += 1
        try:
            reply = self._request(instructions, material)
        except self._failure as error:
            text = redacted(" ".join(str(error).split())[:300], [self._key])
            raise JudgeError(f"{self.settings.url} could not be asked: {text}") from None
        except (ValueError, RecursionError):  # by the library, of what it takes for JSON
            raise JudgeError(f"{self.settings.url} could not be asked: its answer is no JSON") from None
        usage = getattr(reply, "usage", None)
        self.use.prompt_tokens += _count(usage, "prompt_tokens", prompt)
        self.use.completion_tokens += _count(usage, "completion_tokens", _REPLY_TOKENS)
        choices = getattr(reply, "choices", None)
        first = choices[0] if isinstance(choices, list) and choices else None
        content = getattr(getattr(first, "message", None), "content", None)
        return content if isinstance(content, str) else ""

    def _request(self, instructions: str, material: str) -> Any:
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": material}]
        request: dict[str, Any] = {"model": self.settings.model, "messages": messages}
        try:
            return self._create(**request, **{self._limit_name: _REPLY_TOKENS})
        except self._refusal:  # of older servers, which call the limit otherwise
            if self._limit_name == "max_tokens":
                raise
            self._limit_name = "max_tokens"
            return self._create(**request, **{self._limit_name: _REPLY_TOKENS})


def as_one_string(material: Sequence[dict[str, str]]) -> str:
    """Return what is judged as one JSON text of printable ASCII in which no quote, line or tag can be ended."""
    text = json.dumps(list(material), ensure_ascii=True)
    for char in "<>&`":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def parse_verdict(reply: str, ticket: str) -> Verdict | None:
    """Return the verdict that a reply is as a whole, if it has the ticket of its call."""
    text = reply.strip()
    fenced = _FENCE.fullmatch(text)
    try:
        value = json.loads(fenced[1] if fenced else text, object_pairs_hook=_without_repetitions)
        verdict = Verdict.model_validate(value)
    except (ValueError, RecursionError, ValidationError):
        return None
    return verdict if secrets.compare_digest(verdict.ticket.encode(), ticket.encode()) else None


def quotes(verdict: Verdict, material: Sequence[dict[str, str]]) -> bool:
    """Tell whether the words that a verdict quotes are in what was judged; spaces and line ends do not matter."""
    quote = " ".join(verdict.quote.split())
    return bool(quote) and any(quote in " ".join(text.split()) for entry in material for text in entry.values())


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _count(usage: object, name: str, otherwise: int) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value >= 0 else otherwise
