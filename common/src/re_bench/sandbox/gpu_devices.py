"""The device nodes of one GPU, so that a sandbox shows that one and no other.

Which node is whose stands in ``/proc/driver/nvidia/gpus/*/information``, see the chapter on the
``/proc`` interface in the README of NVIDIA's driver. Some virtual machines do not have it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from re_bench.sandbox.spec import SandboxUnavailableError, is_gpu_uuid

_LISTED = Path("/proc/driver/nvidia/gpus")
_NODES = Path("/dev")
_COMMON = ("nvidiactl", "nvidia-uvm")
"""What CUDA opens besides the GPU's own node."""


def device_nodes(uuid: str) -> list[Path]:
    """Return the device nodes that a program needs in order to compute on the GPU ``uuid``, and on no other.

    Raises:
        SandboxUnavailableError: if the GPU is not here, or its node cannot be told from those of others.
    """
    return [_own(uuid), *(path for name in _COMMON if (path := _NODES / name).exists())]


def _own(uuid: str) -> Path:
    """Return the node of the GPU ``uuid``: the listed one, or the only one where nothing is listed."""
    listed = _minors()
    present = sorted(path for path in _NODES.glob("nvidia[0-9]*") if re.fullmatch(r"nvidia\d+", path.name))
    minor = listed.get(_normal(uuid))
    node = None if minor is None else _NODES / f"nvidia{minor}"
    if node is None and not listed and len(present) == 1:
        return present[0]
    if node is None or node not in present:
        raise SandboxUnavailableError(f"the GPU {uuid} cannot be shown to a sandbox: {_reason(node, listed, present)}")
    return node


def _reason(node: Path | None, listed: dict[str, int], present: list[Path]) -> str:
    """Return why there is no node that is surely the GPU's."""
    nodes = ", ".join(map(str, present))
    if node is not None:
        return (
            f"its device node {node} is missing (there is: {nodes or 'none'}); give this machine or container the GPU"
        )
    if listed:
        others = ", ".join(sorted(listed))
        return f"{_LISTED} lists only {others}; a slice of a GPU (MIG) is not listed, and not supported"
    if present:
        return f"{_LISTED} does not tell which of {nodes} it is, and the others must not be shown; leave one GPU here"
    return f"there is no {_NODES}/nvidia[0-9]*; is NVIDIA's driver loaded?"


def _minors() -> dict[str, int]:
    """Return the minor number of every listed GPU by its UUID; what has none yet is left out."""
    minors = {}
    for path in sorted(_LISTED.glob("*/information")):
        with suppress(OSError, KeyError, ValueError):
            fields = _fields(path.read_text(encoding="utf-8", errors="replace"))
            uuid, minor = fields["GPU UUID"], int(fields["Device Minor"])
            if is_gpu_uuid(uuid):  # question marks until the GPU has started
                minors[_normal(uuid)] = minor
    return minors


def _normal(uuid: str) -> str:
    return f"GPU-{uuid[4:].lower()}"


def _fields(text: str) -> dict[str, str]:
    """Return the lines ``name: value`` of a file of the driver."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
