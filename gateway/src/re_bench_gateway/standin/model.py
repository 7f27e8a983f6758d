"""The stand-in model: from the body of a chat completion request to a whole completion."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from re_bench_gateway.errors import UpstreamError, error_body
from re_bench_gateway.standin.asking import Report, asked, reported
from re_bench_gateway.standin.choosing import ODDS, Odds, Talent, choose
from re_bench_gateway.standin.conversation import Conversation, Recogniser
from re_bench_gateway.standin.phrasing import phrased, plan, puzzled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench_gateway.standin.problems import Problem

__all__ = ["FINGERPRINT", "StandIn", "prompt_tokens", "tokens"]

FINGERPRINT = "stand-in"
"""What every completion has as ``system_fingerprint``."""
CONTEXT_TOKENS, ANSWER_TOKENS = 16_385, 4_096  # as gpt-3.5-turbo-0125
_TOKEN_BYTES, _MESSAGE_TOKENS = 4, 4


def tokens(text: str) -> int:
    """Return how many tokens a text counts as: one for every 4 bytes begun."""
    return -(-len(text.encode()) // _TOKEN_BYTES)


def prompt_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return how many tokens messages count as: those of their texts, and 4 for each message."""
    return sum(tokens(Conversation([message]).text) + _MESSAGE_TOKENS for message in messages)


class StandIn:
    """Answers like a weak chat model that is asked for Rust programs. All it knows is a pool of programs.

    An answer depends on the messages, the seeds and how often these messages were asked before, and on nothing else.
    At temperature 0, and with a request's own ``seed``, it does not depend on how often. Each of ``n`` choices counts
    as one asking. ``max_tokens``, ``max_completion_tokens`` and ``stop`` cut an answer short; other parameters of
    sampling, tools and response formats change nothing.

    Args:
        problems: what it can be asked about.
        seed: of all that is drawn.
        odds: those of every difficulty.

    Raises:
        ValueError: if a problem has a difficulty without odds.
    """

    def __init__(self, problems: Sequence[Problem], *, seed: int = 0, odds: Mapping[str, Odds] = ODDS) -> None:
        if unknown := {problem.difficulty for problem in problems} - set(odds):
            raise ValueError(f"no odds for the difficulties {', '.join(sorted(unknown))}; there are {', '.join(odds)}")
        self._recogniser = Recogniser(problems)
        self._talents = {problem.key: Talent(problem, seed, odds[problem.difficulty]) for problem in problems}
        self._seed, self._odds = seed, odds
        self._times: Counter[bytes] = Counter()

    async def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a ``chat.completion`` for the body of a request.

        Raises:
            UpstreamError: if prompt and answer may be longer than the context, as the real model's server says it.
        """
        conversation = Conversation(request["messages"])
        limit = _given(request, "max_completion_tokens", "max_tokens")
        prompt = prompt_tokens(conversation.messages)
        if prompt + (limit or 1) > CONTEXT_TOKENS:
            raise _too_long(prompt)
        room = min(limit or ANSWER_TOKENS, ANSWER_TOKENS)
        texts = self._texts(conversation, request)
        choices = [_choice(place, _stopped(text, request.get("stop")), room) for place, text in enumerate(texts)]
        written = sum(tokens(choice["message"]["content"]) for choice in choices)
        identity = hashlib.sha256("\0".join([conversation.identity, *texts]).encode()).hexdigest()
        return {
            "id": f"chatcmpl-standin-{identity[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "system_fingerprint": FINGERPRINT,
            "choices": choices,
            "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
        }

    def _texts(self, conversation: Conversation, request: Mapping[str, Any]) -> list[str]:
        """Return the text of every choice."""
        stated = self._recogniser.stated(conversation)
        problem, wants = stated.problem, asked(stated)
        count = _given(request, "n") or 1
        if problem is None:
            return [puzzled()] * count
        talent, odds = self._talents[problem.key], self._odds[problem.difficulty]
        shown = conversation.shown(problem)
        report = Report.NONE if shown is None else reported(conversation, stated, shown)
        texts = []
        for draw in self._draws(conversation, request, count):
            if wants.no_code:
                texts.append(plan(draw))
                continue
            program = choose(problem, odds, talent, draw, reasoning=wants.reasoning, shown=shown, report=report)
            texts.append(phrased(program, wants, draw, mended=report is not Report.NONE))
        return texts

    def _draws(self, conversation: Conversation, request: Mapping[str, Any], count: int) -> list[random.Random]:
        """Return what decides, for every choice."""
        asked_for = f"{self._seed} {conversation.identity}"
        if request.get("temperature") == 0:
            return [random.Random(f"{asked_for} greedy") for _ in range(count)]
        if (seed := request.get("seed")) is not None:
            return [random.Random(f"{asked_for} seed {seed} {choice}") for choice in range(count)]
        prompt = hashlib.sha256(asked_for.encode()).digest()
        before = self._times[prompt]
        self._times[prompt] += count
        return [random.Random(f"{asked_for} time {before + choice}") for choice in range(count)]


def _given(request: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of some whole numbers that a request has."""
    return next((int(request[name]) for name in names if request.get(name) is not None), None)


def _stopped(text: str, stop: object) -> str:
    """Cut a text before the first of the request's stop sequences."""
    ends = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    places = [text.find(end) for end in ends if isinstance(end, str) and end and end in text]
    return text[: min(places)] if places else text


def _choice(place: int, text: str, room: int) -> dict[str, Any]:
    """Return a choice of at most ``room`` tokens."""
    cut = tokens(text) > room
    content = text.encode()[: room * _TOKEN_BYTES].decode(errors="ignore") if cut else text
    return {
        "index": place,
        "message": {"role": "assistant", "content": content, "refusal": None},
        "logprobs": None,
        "finish_reason": "length" if cut else "stop",
    }


def _too_long(prompt: int) -> UpstreamError:
    msg = f"This model's maximum context length is {CONTEXT_TOKENS} tokens. However, your messages are {prompt} tokens."
    code = "context_length_exceeded"
    return UpstreamError(400, error_body(msg, "invalid_request_error", param="messages", code=code))
