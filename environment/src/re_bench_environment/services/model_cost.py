"""What the model of a session's task has cost: the session's own calls, and those of its scorings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re_bench_environment.services.model import ModelAccess


@dataclass
class ModelCost:
    """The cost of a session's model in dollars, as of the last time when the gateway was asked."""

    access: ModelAccess | None = None
    """The session's own access, also when it is closed; None if its task has no model."""
    scorings: float = 0.0
    """What its scorings have spent."""

    @property
    def dollars(self) -> float | None:
        """What the session's own calls have cost; None without a model, or where a price is unknown."""
        return None if self.access is None else self.access.dollars

    def as_fields(self) -> dict[str, float | None]:
        """Return both costs as fields of a JSON object."""
        scorings = None if self.dollars is None else round(self.scorings, 9)
        return {"model_dollars": _rounded(self.dollars), "scoring_model_dollars": scorings}


def _rounded(dollars: float | None) -> float | None:
    return None if dollars is None else round(dollars, 9)
