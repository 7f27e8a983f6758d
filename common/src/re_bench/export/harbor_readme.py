"""The README of a Harbor task: what its rewards mean, how it runs, and what is lost against re-bench's own server."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from re_bench.export.harbor_config import ANSWER, FINAL
from re_bench.task import CANARY

if TYPE_CHECKING:
    from re_bench.export.harbor_config import HarborOptions
    from re_bench.export.task_facts import TaskFacts

_SANDBOX = {
    "bubblewrap": "Submissions run in bubblewrap there, so `tests/docker-compose.yaml` lets that container make\n"
    "namespaces; an environment that cannot ends the trial with an exception and no reward.",
    "none": "Submissions run there without a sandbox, **in reach of scorer and truth**: a submission can give itself\n"
    "any reward. The scores say so (`sandbox` in `score.json`).",
}


def readme(facts: TaskFacts, options: HarborOptions, image: str, cheat: str | None) -> str:
    """Return the text; ``image`` is the verifier's, ``cheat`` the one whose submission is the solution, if one is."""
    manifest, tolerance = facts.manifest, facts.profile.tolerance
    anchors = facts.profile.anchors
    scale = "measured in the same run" if anchors is None else f"{anchors.starting:g} and {anchors.reference:g}"
    if cheat is not None:
        expectation = manifest.cheats[cheat].expectation(facts.profile_name)
        wanted = "`valid` 0" if expectation.expect == "invalid" else "a reward no better than that of its honest base"
        solution = (
            f"The solution is the cheat `{cheat}` ({manifest.cheats[cheat].description}): `oracle` must get {wanted}."
        )
    else:
        solution = (
            f"`oracle` runs our reference and gets 1, within {tolerance.reference:g}; `nop` leaves the baseline and\n"
            f"gets 0, within {tolerance.baseline:g}."
        )
    return filled(
        "harbor-readme.md",
        name=facts.task.name,
        title=manifest.title,
        version=manifest.version,
        profile=facts.profile_name,
        description=facts.profile.description,
        unit=manifest.unit,
        better=manifest.direction,
        scale=scale,
        solution=solution,
        image=image,
        sandbox=_SANDBOX[options.sandbox],
        attempts=_attempts_text(facts, options),
        lost="".join(f"- {line}\n" for line in _lost(facts)),
    )


def _attempts_text(facts: TaskFacts, options: HarborOptions) -> str:
    if not options.attempts:
        return (
            "One score, of the workspace as the agent leaves it. `--max-attempts N` of the export adds a tool to get\n"
            "scores before."
        )
    return (
        f"Up to {options.attempts} attempts: the service `{ANSWER}` scores the workspace when the agent asks, and\n"
        f"keeps the log. The verifier scores once more; the {FINAL[facts.manifest.aggregation]} score counts."
    )


def _lost(facts: TaskFacts) -> list[str]:
    """Return what re-bench's own server offers for this task and Harbor's format has no place for."""
    manifest = facts.manifest
    lost = ["Working time: an agent's clock goes on while it waits for a scoring or for other people's machines."]
    if manifest.aggregation != "last":
        lost.append(
            f"Without `--max-attempts`, the {FINAL[manifest.aggregation]} score of several: only the last state counts."
        )
    if manifest.model is not None:
        lost.append("The model gateway: an agent has no model for its own trials; scorings have one.")
    if manifest.meter is not None:
        lost.append("Experiments that are made and counted outside: the budget is a rule, nothing holds it.")
    if facts.profile.device == "cuda" and not facts.profile.parallel:
        lost.append("Times are measured wherever the verifier runs, beside whatever else runs there.")
    return lost


def filled(template: str, **values: Any) -> str:
    """Return a template of this package with the canary and these values in it."""
    text = (files("re_bench.export") / "templates" / template).read_text(encoding="utf-8")
    return Template(text).substitute(canary=CANARY, **values)
