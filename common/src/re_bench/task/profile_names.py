"""What a profile may be called, and the option that names one."""

from __future__ import annotations

import argparse
import re

from re_bench.errors import did_you_mean

PROFILES = ("cpu", "gpu", "paper")
"""The sizes at which a task may run."""
_NAME = re.compile(rf"({'|'.join(PROFILES)})(-[a-z0-9]+)?")


def is_profile(name: object) -> bool:
    """Tell whether a profile may be called so: by its size, or by that, a dash and a word, such as ``cpu-test2``."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def add_profile_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--profile``, which is ``auto`` by default."""
    text = "cpu, gpu, paper or another one of the task; auto: gpu where there is one, else cpu"
    parser.add_argument("--profile", type=_profile, default="auto", metavar="PROFILE", help=text)


def _profile(text: str) -> str:
    if text != "auto" and not is_profile(text):
        hint = did_you_mean(text, ("auto", *PROFILES))
        raise argparse.ArgumentTypeError(f"expected auto, cpu, gpu, paper or one such as cpu-test2, got {text!r}{hint}")
    return text
