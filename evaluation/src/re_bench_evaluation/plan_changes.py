"""A plan as an evaluation keeps it, and what may have changed in it when the evaluation goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from re_bench.task.table import as_list, get_in

if TYPE_CHECKING:
    from re_bench_evaluation.plan import Plan


def changed_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the keys by which a plan may not differ from the one that an evaluation began with, spelled as in TOML.

    What may: further tasks, models, agents, models of an agent and seeds; a higher cap on dollars, and another number
    of tries; where a model's server is, and which variable has its key.
    """
    keys = sorted(_differences(before, now))
    changed = [".".join(key) for key in keys if not _may_change(key, get_in(before, *key), get_in(now, *key))]
    return ["seeds" if key == "all_seeds" else key for key in changed]


def _differences(before: Any, now: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        if before != now:
            yield path
        return
    for key in {*before, *now}:
        yield from _differences(before.get(key), now.get(key), (*path, key))


def _may_change(key: tuple[str, ...], before: Any, now: Any) -> bool:
    is_new = before is None and now is not None
    if key[0] in {"agents", "models"}:
        whole_table = len(key) == 2  # noqa: PLR2004 - the name of an agent or a model, with all that is in it
        reached = key[0] == "models" and key[2:] in {("base_url",), ("key_variable",)}
        extended = key[2:] == ("models",) and now is not None and set(as_list(before)) <= set(as_list(now))
        return (whole_table and is_new) or reached or (extended and before is not None)
    if key == ("dollars",):
        return now is None or (before is not None and now >= before)
    if key in {("tasks",), ("all_seeds",)}:
        return set(as_list(before)) <= set(as_list(now))
    return key in {("tries",), ("runs",), ("seeds",)}  # of the last two, all_seeds tells


def record_of(plan: Plan) -> dict[str, Any]:
    """Return a plan as ``evaluation.json`` keeps it: with all defaults, and with the seeds of every cell."""
    return plan.model_dump(mode="json") | {"all_seeds": list(plan.all_seeds)}
