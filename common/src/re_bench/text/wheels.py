"""The pinned wheels whose text is the corpus: found in folders, or fetched once, and always checked."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.files import sha256_of
from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Wheel:
    """One wheel file, the same bytes on every platform."""

    name: str
    version: str
    file: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The line that makes pip take this file and no other."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


@cache
def pinned_wheels() -> tuple[Wheel, ...]:
    """Return the wheels of ``wheels.toml``, in the order in which their text is read."""
    text = Path(__file__).with_name("wheels.toml").read_text(encoding="utf-8")
    return tuple(Wheel(**entry) for entry in tomllib.loads(text)["wheels"])


def find_wheels(wheels: Sequence[Wheel], store: Path, folder: Path | None = None) -> list[Path]:
    """Return where each wheel lies: in ``folder``, or in ``store``, into which missing ones are fetched with pip.

    Raises:
        UsageError: if a file is not the pinned one, or is missing and cannot be fetched.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(f"{folder}: not a directory; give the folder that holds the wheels")
    folders = [store] if folder is None else [folder, store]
    missing = [wheel for wheel in wheels if not any((path / wheel.file).is_file() for path in folders)]
    if missing:
        fetch(missing, store)
    return [_checked(wheel, folders) for wheel in wheels]


def fetch(wheels: Sequence[Wheel], store: Path) -> None:
    """Fetch wheels into ``store`` with pip, from wherever pip is set up to look.

    Raises:
        UsageError: if ``store`` cannot be made, or pip does not get them all.
    """
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{store}: missing, and cannot be made there ({error.strerror}); set RE_BENCH_CACHE elsewhere"
        ) from None
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=store) as incoming:
        requirements = Path(incoming) / "requirements.txt"
        requirements.write_text("".join(f"{wheel.requirement}\n" for wheel in wheels), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--retries", "1", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
        done = subprocess.run(
            [*command, "--dest", incoming, "-r", str(requirements)], check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            names = ", ".join(wheel.file for wheel in wheels)
            raise UsageError(
                f"missing {names}, and pip cannot fetch it ({_reason(done.stderr)}); give a folder: --wheels DIR"
            )
        for path in Path(incoming).glob("*.whl"):
            shutil.move(path, store / path.name)


def _checked(wheel: Wheel, folders: Sequence[Path]) -> Path:
    path = next((folder / wheel.file for folder in folders if (folder / wheel.file).is_file()), None)
    if path is None:
        raise UsageError(f"pip fetched another file than {wheel.file}; give a folder that holds it: --wheels DIR")
    if (actual := sha256_of(path)) != wheel.sha256:
        raise UsageError(
            f"{path}: SHA-256 {actual}, pinned is {wheel.sha256}; delete this file, or give another folder"
        )
    return path


def _reason(stderr: str) -> str:
    """Return the last error of pip, which comes after warnings and before hints."""
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    return (errors or [stderr.strip() or "no reason given"])[-1].splitlines()[-1]
