"""What of the tasks' data is prepared, and, where something is missing, whether it can be fetched."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory
from re_bench.data.prepared import is_prepared
from re_bench.runs.doctor.finding import Finding, Target
from re_bench.text.wheels import pinned_wheels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_INDEX = "https://pypi.org/simple"
_HUB = "https://huggingface.co"
_ANSWER_S = 3.0
_PIP_S = 20.0
_PUBLISHED = "paper"
"""The profile whose data are on the hub."""


def check_prepared(targets: Sequence[Target], *, network: bool | None = None) -> list[Finding]:
    """Say what is prepared, and ask where the rest would come from.

    Args:
        targets: the tasks in their profiles.
        network: whether to ask; None: if something has to be fetched.
    """
    with_data = [target for target in targets if target.task.preparer.is_file()]
    missing = [target for target in with_data if not _is_ready(target)]
    ready = [target for target in with_data if target not in missing]
    findings = []
    if ready:
        findings.append(Finding("prepared", "ok", _listed(ready)))
    if missing:
        found = f"not yet: {_listed(missing)}; the first run does it"
        findings.append(Finding("prepared", "note", found, f"type: re-bench prepare {_words(missing)}"))
    asked = [] if network is False else sources(missing, everything=network is True)
    return findings + [check_source(url) for url in asked]


def _is_ready(target: Target) -> bool:
    return is_prepared(target.task.name, target.profile, target.task.manifest.version)


def sources(missing: Sequence[Target], *, everything: bool = False) -> list[str]:
    """Return from where preparing fetches: pip's index for wheels that are not in the cache, the hub for ``paper``."""
    wheels = cache_directory() / "wheels"
    needs_wheels = bool(missing) and not all((wheels / wheel.file).is_file() for wheel in pinned_wheels())
    needs_hub = any(target.profile == _PUBLISHED for target in missing)
    found = pip_sources() if needs_wheels or everything else []
    return found + ([os.environ.get("HF_ENDPOINT", _HUB)] if needs_hub or everything else [])


def pip_sources() -> list[str]:
    """Return the one place that pip, as it is set up, looks into first: a URL or a directory."""
    settings = _pip_settings()
    links = settings.get("find-links", "").split()
    if settings.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        return links[:1]
    return [settings.get("index-url", _INDEX)]


def _pip_settings() -> dict[str, str]:
    """Return pip's settings by name; those of the environment win."""
    words = [sys.executable, "-m", "pip", "config", "list"]
    try:
        lines = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_PIP_S).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = [line.partition("=") for line in lines]
    ranked = sorted(pairs, key=lambda pair: pair[0].startswith(":env:"))
    return {key.rpartition(".")[2]: value.strip("'\"") for key, _equals, value in ranked}


def check_source(url: str) -> Finding:
    """Find out whether a server answers, whatever it answers, or a directory is there."""
    parts = urllib.parse.urlsplit(url)
    shown = url if parts.username is None else url.replace(parts.netloc.rpartition("@")[0], "...", 1)
    remedy = "connect this machine, or set PIP_INDEX_URL (for the hub HF_ENDPOINT) to a mirror that it reaches"
    if parts.scheme in {"", "file"}:
        there = Path(urllib.request.url2pathname(parts.path)).is_dir()
        return Finding(
            "network", "ok" if there else "problem", f"{shown} is {'' if there else 'not '}there", remedy * (not there)
        )
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - of pip's settings
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_S):  # noqa: S310 - as above
            pass
    except urllib.error.HTTPError:
        pass  # it answered
    except (OSError, ValueError) as error:
        return Finding("network", "problem", f"{shown} does not answer: {getattr(error, 'reason', error)}", remedy)
    return Finding("network", "ok", f"{shown} answers")


def _listed(targets: Iterable[Target]) -> str:
    return ", ".join(f"{target.task.name} ({target.profile})" for target in targets)


def _words(targets: Sequence[Target]) -> str:
    profile = f" --profile {targets[0].profile}" if len({target.profile for target in targets}) == 1 else ""
    return " ".join(target.task.name for target in targets) + profile
