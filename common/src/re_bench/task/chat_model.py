"""Another chat model than the one that a task's manifest names, as an operator chooses it: ``--model NAME``."""

from __future__ import annotations

import datetime as dt
import math
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

from cyclopts import Group, Parameter
from cyclopts.validators import Number

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


_MODEL = Group("Another chat model, in profiles that ask a real one (OPENAI_BASE_URL: where)", sort_key=10)


def _check_dollars(_type: object, prices: tuple[float, float] | None) -> None:
    if prices is not None and not all(0 <= price < math.inf for price in prices):
        raise ValueError("expected dollars, 0 or more")


@Parameter(name="*", group=_MODEL)
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options of a command line that choose another chat model."""

    model: Annotated[
        str | None, Parameter(name="--model", help="Instead of the task's own; it has anchors of its own.")
    ] = None
    price: Annotated[
        tuple[float, float] | None,
        Parameter(
            name="--model-price",
            validator=_check_dollars,
            negative=(),
            help="Dollars a million tokens of prompt and completion (default: from the package genai-prices).",
        ),
    ] = None
    context: Annotated[
        int | None, Parameter(name="--model-context", validator=Number(gte=1), help="The most tokens of a prompt.")
    ] = None
    max_output: Annotated[
        int | None,
        Parameter(
            name="--model-output", validator=Number(gte=1), help="The most tokens of an answer (default: of a prompt)."
        ),
    ] = None

    def chosen(self) -> ChatModel | None:
        """Return the model that the options name, or None.

        Raises:
            UsageError: if they give terms of a model, and name none.
        """
        dollars_in, dollars_out = self.price or (None, None)
        model = ChatModel(self.model or "", dollars_in, dollars_out, self.context, self.max_output)
        if self.model is None and model.terms:
            raise UsageError("--model-price, --model-context and --model-output are of a model; add --model NAME")
        return None if self.model is None else model


NO_MODEL = ModelOptions()
"""The task's own model."""
