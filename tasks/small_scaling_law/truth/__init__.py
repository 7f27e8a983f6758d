"""The truth: the loss of any run that an answer may name. Nothing here is ever shown to a sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from re_bench.errors import UsageError
from truth.law import Law
from truth.line import Line
from truth.surface import Surface

if TYPE_CHECKING:
    from truth.run import Run

__all__ = ["Truth", "open_truth", "place"]

KINDS: dict[str, Any] = {"line": Line.from_json, "law": Law.from_json, "surface": Surface.from_json}


class Truth(Protocol):
    """What a truth can say."""

    @property
    def name(self) -> str:
        """Where it comes from, in a line."""

    @property
    def best(self) -> Run:
        """The run of the least loss among all that an answer may name."""

    def loss(self, n_embd: int, max_iters: int) -> float:
        """Return the loss of a run in nats a token."""


def place(profile: str) -> Path:
    """Return where the truth of a profile lies or will lie."""
    return Path(__file__).with_name(f"{profile}.json")


def open_truth(profile: str) -> Truth:
    """Return the truth of a profile.

    Raises:
        UsageError: if there is none.
    """
    path = place(profile)
    if not path.is_file():
        raise UsageError(
            f"small_scaling_law has no truth for profile {profile} yet; run: python sweep.py --profile {profile}"
        )
    found = json.loads(path.read_text(encoding="utf-8"))
    truth: Truth = KINDS[found["kind"]](found)
    return truth
