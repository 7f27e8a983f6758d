"""Another chat model than the one that a task's manifest names, as an operator chooses it: ``--model NAME``."""

from __future__ import annotations

import argparse
import datetime as dt
import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from genai_prices.types import ModelPrice

OPENAI = "https://api.openai.com/v1"
"""The server that is asked unless ``OPENAI_BASE_URL`` names another one."""
_LIST = "genai-prices"


@dataclass(frozen=True)
class ChatModel:
    """A chat model by the name that its server knows, and its terms; those that are None are to be looked up."""

    name: str
    dollars_in: float | None = None
    """Dollars a million prompt tokens."""
    dollars_out: float | None = None
    """Dollars a million completion tokens."""
    context: int | None = None
    """The most tokens of a prompt."""
    max_output: int | None = None
    """The most tokens of one completion."""

    @property
    def terms(self) -> dict[str, float | int]:
        """Those that are known, by the names of the fields."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}

    @classmethod
    def from_details(cls, details: Mapping[str, Any]) -> Self | None:
        """Return the model of a score's details, if it was not the manifest's."""
        return cls(details["model"], **details["model_terms"]) if "model_terms" in details else None

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Self | None:
        """Return the model that a command line with :func:`add_model_options` names, or None.

        Raises:
            UsageError: if it says what a model costs, or how much it reads and writes, and names none.
        """
        dollars_in, dollars_out = options.model_price or (None, None)
        model = cls(options.model or "", dollars_in, dollars_out, options.model_context, options.model_output)
        if options.model is None and model.terms:
            raise UsageError("--model-price, --model-context and --model-output are of a model; add --model NAME")
        return None if options.model is None else model

    def words(self) -> list[str]:
        """Return the words of a command line that name the model with all of its terms."""
        options = {"--model-context": self.context, "--model-output": self.max_output}
        price = ["--model-price", str(self.dollars_in), str(self.dollars_out)] if self.dollars_in is not None else []
        known = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        return ["--model", self.name, *price, *known]

    def with_terms(self) -> Self:
        """Return the model with all of its terms: those that are not given, from the list of the package genai-prices.

        Only the prices of the server at ``OPENAI_BASE_URL``, or of OpenAI, are looked at: a server that is not on the
        list may offer a model of any name at any price.

        Raises:
            UsageError: if something is neither given nor known, with what to type.
        """
        chosen = self if self.dollars_in is not None and self.context is not None else self._looked_up()
        lacking = [] if chosen.dollars_in is not None and chosen.dollars_out is not None else ["--model-price IN OUT"]
        lacking += [] if chosen.context is not None else ["--model-context TOKENS"]
        if lacking:
            raise UsageError(
                f"{_LIST} does not know all of the model {self.name!r} at {_server()}; add {' '.join(lacking)} (prices "
                "are in dollars a million tokens of prompt and completion, 0 0 if the model costs nothing)"
            )
        return type(self)(**{**asdict(chosen), "max_output": chosen.max_output or chosen.context})

    def _looked_up(self) -> Self:
        try:
            from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - of the extra `prices`
        except ModuleNotFoundError:
            raise UsageError(
                f"what {self.name!r} costs is not given: add --model-price IN OUT --model-context TOKENS, or install "
                f"the list {_LIST}: pip install -c constraints.txt -e 'common[prices]'"
            ) from None
        try:
            _provider, entry = get_snapshot().find_provider_model(self.name, None, None, _server())
        except LookupError:
            return self
        dollars_in, dollars_out = _dollars(entry.get_prices(dt.datetime.now(dt.UTC)))
        known = {"dollars_in": dollars_in, "dollars_out": dollars_out, "context": entry.context_window}
        return type(self)(**{**asdict(self), **known, **self.terms})


def _server() -> str:
    return os.environ.get("OPENAI_BASE_URL") or OPENAI


def _dollars(price: ModelPrice) -> list[float | None]:
    """Return what a million tokens of prompt and completion cost at most; None where the list does not say."""
    from genai_prices.types import TieredPrices  # noqa: PLC0415 - for prices that rise with the prompt's length

    bounds = []
    for entry in (price.input_mtok, price.output_mtok):
        prices = [entry.base, *(tier.price for tier in entry.tiers)] if isinstance(entry, TieredPrices) else [entry]
        bounds.append(max((float(value) for value in prices if value is not None), default=None))
    return bounds


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--model`` and what is said of it."""
    group = parser.add_argument_group(
        "another chat model, in the profiles that ask a real one (OPENAI_BASE_URL: where)"
    )
    group.add_argument("--model", metavar="NAME", help="instead of the task's own; it has anchors of its own")
    group.add_argument(
        "--model-price",
        nargs=2,
        type=_dollars_of_option,
        metavar=("IN", "OUT"),
        help="dollars a million tokens of prompt and completion (default: as the package genai-prices knows it)",
    )
    group.add_argument("--model-context", type=_tokens, metavar="N", help="the most tokens of a prompt")
    group.add_argument(
        "--model-output",
        type=_tokens,
        metavar="N",
        help="the most tokens of an answer (default: as of a prompt)",
    )


def _dollars_of_option(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected dollars, 0 or more, got {text!r}")
    return value


def _tokens(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number, got {text!r}")
    return value
