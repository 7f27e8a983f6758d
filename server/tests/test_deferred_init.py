"""Starting a server does not import what it does not need, and what was left out is there for who asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from forked_programs import Template

WITH_VENDORS = Template("anthropic", "openai")
"""Forks of what has imported the vendors' packages, nine tenths of what all of the SDK imports."""


def python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_server_does_not_import_packages_of_vendors_of_models() -> None:
    program = "import sys, re_bench_server.server; print([n for n in ('anthropic', 'openai') if n in sys.modules])"
    assert python(program) == "[]\n"


@pytest.mark.parametrize("after", ["", "import re_bench_server.server; ", "import re_bench_server; "])
def test_all_of_the_package_is_there_for_who_asks(after: str) -> None:
    program = (
        f"{after}import openreward; from openreward import OpenReward, toolsets; "
        "print(OpenReward.__name__, toolsets.__name__, openreward.OpenReward is OpenReward, "
        "hasattr(openreward, 'nothing'))"
    )
    done = WITH_VENDORS.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "OpenReward openreward.toolsets True False\n"


def test_a_package_that_is_there_or_is_missing_is_left_as_it_is() -> None:
    program = (
        "import json, sys; from re_bench_server.deferred_init import defer_init; "
        "defer_init('json'); defer_init('no_such_package'); "
        "print(sys.modules['json'] is json, 'no_such_package' in sys.modules)"
    )
    assert python(program) == "True False\n"
