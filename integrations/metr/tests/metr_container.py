"""Emulate a container of METR's Task Standard with mounts.

It has its own ``/root``, ``/home``, users and additions to ``/opt``, and hides the checkout, so that a family must
bring all that it needs. Everything else is this machine's; it isolates nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from metr_driver import SEPARATOR

TOP = Path(__file__).resolve().parents[3]
AGENT = 1000
FAMILY = Path("/root")
"""Where the standard puts a family, in the container."""
_ENTER = """
set -eu
place=$1 cache=$2 hidden=$3
shift 3
if [ -n "$cache" ]; then
    mkdir -p "$place/kept/cache"
    mount --bind "$cache" "$place/kept/cache"
fi
count=0
for path in $KEPT; do
    mkdir -p "$place/kept/$count"
    mount --bind "$path" "$place/kept/$count"
    count=$((count + 1))
done
mount --bind "$place/root" /root
mount --bind "$place/home" /home
mount --bind "$place/passwd" /etc/passwd
mount --bind "$place/group" /etc/group
mount --bind "$place/nothing" "$hidden"
mount --rbind /opt "$place/kept/opt"
mount --bind "$place/opt" /opt
for path in "$place"/kept/opt/*; do
    [ -d "$path" ] || continue
    mkdir -p "/opt/${path##*/}"
    mount --rbind "$path" "/opt/${path##*/}"
done
count=0
for path in $KEPT; do
    mkdir -p "$path"
    mount --bind "$place/kept/$count" "$path"
    count=$((count + 1))
done
cd /root
if [ -n "$cache" ]; then
    mkdir -p -m 700 re-bench-state
    mkdir -p re-bench-state/cache
    mount --bind "$place/kept/cache" re-bench-state/cache
fi
exec "$@"
"""


@dataclass
class Container:
    """A container of one family."""

    place: Path
    """An empty directory for the container's files."""
    family: Path
    """The exported directory."""
    python: Path = field(default_factory=lambda: Path(sys.executable))
    cache: Path | None = None
    """Shared prepared data, if any."""

    def __post_init__(self) -> None:
        """Create the container's files, with the family below ``/root``; skip the test without the required rights."""
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            pytest.skip("NOT TESTED: needs root, and unshare of util-linux")
        programs = json.loads((self.family / "assets" / "family.json").read_text())["programs"]
        if missing := [program for program in programs if shutil.which(program) is None]:
            pytest.skip(f"NOT TESTED: install {', '.join(missing)}; otherwise the family would, on this machine")
        for name in ("home/agent", "kept/opt", "nothing", "opt"):
            (self.place / name).mkdir(parents=True)
        os.chown(self.place / "home" / "agent", AGENT, AGENT)
        shutil.copytree(self.family, self.place / "root")
        (self.place / "root").chmod(0o755)  # a driver may leave it readable; the family must hide its secrets
        for name, line in (
            ("passwd", f"agent:x:{AGENT}:{AGENT}::/home/agent:/bin/bash\n"),
            ("group", f"agent:x:{AGENT}:\n"),
        ):
            others = [text for text in Path("/etc", name).read_text().splitlines() if f":x:{AGENT}:" not in text]
            (self.place / name).write_text("\n".join(others) + "\n" + line)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command as root, in ``/root``."""
        # Python and Rust may lie below a hidden directory.
        rust = [str(path) for name in (".cargo", ".rustup") if (path := Path("/root", name)).is_dir()]
        programs = dict.fromkeys((sys.base_prefix, str(self.python.parents[1]), *rust))
        kept = [path for path in programs if Path(path).is_relative_to("/root") or Path(path).is_relative_to(TOP)]
        words = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--propagation",
            "private",
            "sh",
            "-c",
            _ENTER,
        ]
        words += ["sh", str(self.place), str(self.cache or ""), str(TOP), *map(str, command)]
        passed = [name for name in os.environ if name in {"PATH", "LANG"} or name.startswith("PIP_")]
        variables = {name: os.environ[name] for name in passed}
        variables |= {"HOME": "/root", "KEPT": " ".join(kept), "OMP_NUM_THREADS": "1"}
        return subprocess.run(words, capture_output=True, text=True, check=False, env=variables, cwd="/")

    def as_agent(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a bash script as the user ``agent`` in its home."""
        user = ("setpriv", f"--reuid={AGENT}", f"--regid={AGENT}", "--clear-groups", "--")
        return self.run(*user, "bash", "-c", f"cd /home/agent; {script}")

    def operate(self, operation: str, *options: str) -> Any:
        """Run an operation with the driver, and return its result."""
        driver = self.place / "driver.py"
        shutil.copy(Path(__file__).with_name("metr_driver.py"), driver)
        done = self.run(self.python, "-P", driver, self.family.name, operation, *options)
        assert done.returncode == 0, done.stderr[-4000:]
        _before, result, _after = done.stdout.split(f"{SEPARATOR}\n")
        return json.loads(result)

    def write(self, name: str, text: str) -> None:
        """Write a file of the workspace, as the agent."""
        path = self.place / "home" / "agent" / "solution" / name
        path.write_text(text)
        os.chown(path, AGENT, AGENT)
