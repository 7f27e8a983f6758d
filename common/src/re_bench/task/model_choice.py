"""A task with the chat model that an operator chose for it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError

if TYPE_CHECKING:
    from re_bench.task.chat_model import ChatModel
    from re_bench.task.discovery import Task


def choose_model(task: Task, profile: str, model: ChatModel | None) -> Task:
    """Return the task with another chat model in its manifest, and the anchors that were measured with it.

    Without a choice the task stays as it is; so it does with the manifest's own model by any of its names, but for the
    terms that are given.

    Raises:
        UsageError: if the profile asks no real model, or the model's terms are neither given nor known.
    """
    if model is None:
        return task
    if not task.manifest.asks_model(profile):
        keys = task.manifest.model.key if task.manifest.model else ()
        where = f"profile {profile} of {task.name} asks no chat model that could be chosen"
        raise UsageError(f"--model {model.name}: {where}; {f'use --profile {keys[0]}' if keys else 'leave it out'}")
    manifest = task.manifest.with_model(model.name)
    if manifest is task.manifest:
        return replace(task, chat_model=model) if model.terms else task
    return replace(task, manifest=manifest, chat_model=model.with_terms())


def model_details(task: Task, profile: str) -> dict[str, Any]:
    """Return for a score's details which chat model is asked, if any, and the terms of one that was chosen."""
    if task.manifest.model is None:
        return {}
    name = task.manifest.model.name if task.manifest.asks_model(profile) else "stand-in"
    return {"model": name, **({"model_terms": task.chat_model.terms} if task.chat_model else {})}


def calibrate_command(task: Task, profile: str) -> str:
    """Return the command that measures the anchors of a profile, with the chosen chat model if there is one."""
    if task.chat_model is None:
        return f"nox -s calibrate-{task.name} -- --profile {profile}"
    return f"re-bench calibrate {task.name} --profile {profile} {shlex.join(task.chat_model.words())}"
