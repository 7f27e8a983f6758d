"""Make bundles without the packer."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def packed_by_a_stranger(evaluation: Path, out: Path) -> Path:
    """Pack all files of a directory with a matching manifest."""
    paths = [path for path in sorted(evaluation.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(evaluation)): path.read_bytes() for path in paths}
    listed = {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()}
    manifest = {"evaluation": "x", "created": "", "files": listed}
    with tarfile.open(out, "w:gz") as archive:
        for name, data in {"manifest.json": json.dumps(manifest).encode(), **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out
