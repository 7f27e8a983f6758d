"""The ``task.toml`` of a Harbor task: who runs where with what, and what readers of rewards have to know.

The keys are those of Harbor's schema 1.4, as its command ``harbor task schema`` prints it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from re_bench.data.instances import PINNED
from re_bench.export import WORKSPACE
from re_bench.scoring.time_limit import scorer_limit_s
from re_bench.task.chat_model import OPENAI
from re_bench.task.choices import instance_of

if TYPE_CHECKING:
    from re_bench.export import TaskFacts

ATTEMPTS = "/attempts"
"""Where the answer service keeps its log, and where the verifier finds it."""
ANSWER = "answer"
"""The compose service beside the agent's container, and the tool that it offers."""
ANSWER_PORT = 8000

_PATIENCE_S = 120.0
"""For a verifier to start Python, and to wait for what the machine does besides."""
_BUILD_S = 3600.0


@dataclass(frozen=True, slots=True)
class HarborOptions:
    """What an operator chooses of a Harbor task."""

    verifier_image: str | None = None
    """The image that scores; None for :func:`verifier_image_of` the task."""
    sandbox: Literal["bubblewrap", "none"] = "bubblewrap"
    """What the verifier runs a submission in. bubblewrap needs a container that may make namespaces."""
    attempts: int = 0
    """How many attempts an agent may have scored while it works; 0 for no tool to do so."""
    hours: float = 8.0
    """How long an agent may work."""


def verifier_image_of(facts: TaskFacts) -> str:
    """Return the name of the image that ``nox -s images`` builds to score a task; its tag is the core's version."""
    return f"re-bench/verifier-{facts.task.name}:{version('re-bench-common')}"


def harbor_config(facts: TaskFacts, options: HarborOptions, cheat: str | None = None) -> dict[str, Any]:
    """Return the tables of ``task.toml``.

    Args:
        facts: the task.
        options: the operator's choices.
        cheat: the name of the cheat that is the solution in place of the reference, if one is.
    """
    manifest, resources = facts.manifest, facts.resources
    container = {"build_timeout_sec": _BUILD_S, "cpus": resources.cpus, "memory_mb": resources.memory_mib}
    container |= {"storage_mb": resources.storage_mib} | ({"gpus": resources.gpus} if resources.gpus else {})
    agent: dict[str, Any] = container | {"workdir": WORKSPACE}
    name, artifacts = facts.task.name if cheat is None else f"{facts.task.name}-cheat-{cheat}", _artifacts(facts)
    if options.attempts:
        address = f"http://{ANSWER}:{ANSWER_PORT}/mcp"
        agent["mcp_servers"] = [{"name": "re-bench", "transport": "streamable-http", "url": address}]
        artifacts.append({"source": ATTEMPTS, "service": ANSWER})
    return {
        "schema_version": "1.4",
        "artifacts": artifacts,
        "task": {
            "name": f"re-bench/{name}",
            "version": str(manifest.version),
            "description": manifest.description if cheat is None else manifest.cheats[cheat].description,
            "keywords": ["re-bench", "ai-research", facts.profile_name],
        },
        "metadata": _metadata(facts, options, cheat),
        "agent": {"timeout_sec": options.hours * 3600, "user": "agent"},
        "verifier": {
            "timeout_sec": scorer_limit_s(facts.profile.time_limit_s) + _PATIENCE_S,
            "user": "root",
            "environment_mode": "separate",
            "env": _verifier_env(facts),
            "environment": {
                "network_mode": "public" if manifest.asks_model(facts.profile_name) else "no-network",
                **container,
            },
        },
        "environment": agent,
    }


def _artifacts(facts: TaskFacts) -> list[dict[str, Any]]:
    """Return what of a workspace is brought to the verifier: what is copied of a submission."""
    names = facts.manifest.staging.names or ()
    left_out = [f"./{name.removeprefix('!')}" for name in names if name.startswith("!")]
    if names and not left_out:
        return [{"source": f"{WORKSPACE}/{name}"} for name in names]
    return [{"source": WORKSPACE, **({"exclude": left_out} if left_out else {})}]


def _metadata(facts: TaskFacts, options: HarborOptions, cheat: str | None) -> dict[str, Any]:
    """Return the scale of scores, how the solution of a cheat has to fail, and what Harbor's linter should accept."""
    about = facts.scale() | {"verifier_sandbox": options.sandbox, "attempts": options.attempts}
    if cheat is not None:
        expectation = facts.manifest.cheats[cheat].expectation(facts.profile_name)
        expected = expectation.model_dump(include={"expect", "reason", "derived_from"}, exclude_none=True)
        about["cheat"] = {"name": cheat, **expected}
    # The verifier's container makes the namespaces of the sandbox; see the README.
    lint = {"harbor": {"lint": {"ignore": ["compose-additional-capabilities"]}}}
    return {"re_bench": about, **({} if options.sandbox == "none" else lint)}


def _verifier_env(facts: TaskFacts) -> dict[str, str]:
    """Return the verifier's variables: the instance that the workspace is of, and where the real model is."""
    variables = {}
    if facts.profile.instance == "chosen":
        chosen = instance_of(facts.task, facts.profile_name)
        variables[PINNED] = json.dumps({f"{facts.task.name}/{facts.profile_name}": chosen})
    if facts.manifest.asks_model(facts.profile_name):
        variables |= {"OPENAI_API_KEY": "${OPENAI_API_KEY}", "OPENAI_BASE_URL": f"${{OPENAI_BASE_URL:-{OPENAI}}}"}
    return variables
