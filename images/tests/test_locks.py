"""Test the lock files: requirements, pins and hashes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import lock

TABLES = lock.read_tables()


@pytest.mark.parametrize("name", TABLES)
def test_lock_files_are_up_to_date(name: str) -> None:
    assert lock.problems(name) == []


@pytest.mark.parametrize("name", TABLES)
def test_packages_have_hashes_and_exclude_torch(name: str) -> None:
    text = lock.lock_file(name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", line), line
        assert not re.match(r"torch==|nvidia-(?!ml-py)|cuda-", line), line
    assert "://" not in text


def test_the_shared_lock_has_all_requirements_except_ray() -> None:
    wanted = lock.requirements(TABLES["shared"])
    assert {"inspect-ai>=0.3.285", "pytest", "transformers", "kernelguard", "triton"} <= set(wanted)
    assert not [line for line in wanted if lock.name_of(line) in {"ray", "torch"} or line.startswith("re-bench")]


@pytest.mark.parametrize(
    ("table", "changed"),
    [
        ({"packages": ["numpy"]}, {"packages": ["numpy", "scipy"]}),
        ({"packages": ["numpy"]}, {"packages": ["numpy>=2"]}),
    ],
)
def test_changed_requirements_change_the_first_line(table: dict[str, Any], changed: dict[str, Any]) -> None:
    assert lock.made_from(table) != lock.made_from(changed)
    assert lock.made_from(table) == lock.made_from({**table})


def test_error_messages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no project at nowhere"):
        lock.requirements({"projects": ["nowhere[x]"]})
    with pytest.raises(SystemExit) as stopped:
        lock.main(["nothing"])
    assert stopped.value.code == 2
    assert "choose from: torch" in capsys.readouterr().err
