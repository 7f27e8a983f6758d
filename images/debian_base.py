"""A base image out of Debian's packages, by debootstrap: for a machine that reaches no registry of images.

It is Debian 12 with its Python 3.11, as root alone can make it, and trusts the authorities in this machine's
/usr/local/share/ca-certificates too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engines import Build, EngineError

if TYPE_CHECKING:
    from engines import Engine

TAG = "localhost/re-bench/debian-base:bookworm"
PACKAGES = "ca-certificates,python3,python3-venv"
OWN_AUTHORITIES = Path("/usr/local/share/ca-certificates")
_DOCKERFILE = 'FROM scratch\nADD base.tar /\nCMD ["bash"]\n'


def ensure_base(engine: Engine, log: Path) -> str:
    """Make the image :data:`TAG` unless it is there, and return its name.

    Raises:
        EngineError: if this is not root, there is no debootstrap, or a step fails; its words are in ``log``.
    """
    try:
        engine.ask("inspect", "--type", "image", TAG)
    except EngineError:
        _make(engine, log)
    return TAG


def _make(engine: Engine, log: Path) -> None:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise EngineError("the base needs root and debootstrap; type: sudo apt-get install debootstrap, and use sudo")
    with tempfile.TemporaryDirectory(prefix="re-bench-base-") as place:
        root, context = Path(place) / "root", Path(place) / "context"
        context.mkdir()
        try:
            _install(root, log)
            subprocess.run(["tar", "--directory", root, "--create", "--file", context / "base.tar", "."], check=True)
        except subprocess.CalledProcessError as error:
            raise EngineError(f"{error.cmd[0]} ended with {error.returncode}; {log} says more") from None
        shutil.rmtree(root)
        (context / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
        engine.build(Build(context / "Dockerfile", context), [TAG], log)


def _install(root: Path, log: Path) -> None:
    with log.open("w", encoding="utf-8") as output:
        for command in (
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)],
            ["cp", "--recursive", "--no-target-directory", str(OWN_AUTHORITIES), f"{root}{OWN_AUTHORITIES}"],
            ["chroot", str(root), "update-ca-certificates"],
            ["chroot", str(root), "apt-get", "clean"],
        ):
            subprocess.run(command, stdout=output, stderr=output, check=True)
