"""What a gateway lets through for a task: the chat model of its manifest, or the one that an operator chose instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench_gateway.settings import Model

if TYPE_CHECKING:
    from re_bench.task import manifest
    from re_bench.task.chat_model import ChatModel


def models_of(model: manifest.Model, chosen: ChatModel | None = None) -> tuple[Model, ...]:
    """Return the model by its own name, and by each of its aliases.

    Args:
        model: the manifest's, which has the name of the chosen one.
        chosen: says what that one costs, and its bounds in tokens; else :mod:`re_bench_gateway.prices` knows them.
    """
    terms: dict[str, Any] = chosen.terms if chosen else {}
    aliases = (Model(name=alias, asks_for=model.name, **terms) for alias in model.aliases)
    return (Model(name=model.name, **terms), *aliases)
