from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def prepare(profile: str, say: Callable[[str], None]) -> None:
    made = cache_directory() / "made_up" / profile
    if not made.exists():
        say(f"making what {profile} needs")
        print("chatter of a library")
        made.mkdir(parents=True)
        (made / "data").write_text(f"prepared for {profile}")


def lay_out(profile: str, target: Path) -> None:
    for name in ("data", "both"):
        shutil.copyfile(cache_directory() / "made_up" / profile / "data", target / name)
