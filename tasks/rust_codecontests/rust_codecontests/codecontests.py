"""Read the problems of profile ``paper``: CodeContests, as published on the Hugging Face hub.

The RE-Bench paper describes its held-out set as an "easy" part of this data set, selected by an unknown rule. Because
the paper's scores are fractions of 165 problems and the whole test split has 165 problems, this module uses the whole
split, including problems whose statements need an image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench.data.huggingface import Repository, identity
from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CODECONTESTS = Repository(
    "deepmind/code_contests",
    "dataset",
    "802411c3010cb00d1b05bad57ca77365a3c699d6",
    {
        "data/valid-00000-of-00001-5e672c5751f060d3.parquet": (
            "02e8c1ccedae716f1e43cc813fcb7823c3db666ea92638820aba80e8cef451ab"
        ),
        "data/test-00000-of-00001-9c49eeff30aacaa8.parquet": (
            "aa426cbdb202bf8703b658bcb31fd1878ca7cfd33ca07d3b703dc94ca6a2b651"
        ),
    },
)
"""The data set at a fixed commit: 51,829,044 bytes (validation split) and 63,077,400 bytes (test split) of parquet.
Several independent projects recorded the same commit and checksums. Downloads are verified."""

PROBLEMS = {"valid": 117, "test": 165}
"""Number of problems in each split."""

_TESTS = ("public_tests", "private_tests", "generated_tests")
_COLUMNS = ("name", "description", *_TESTS, "time_limit", "memory_limit_bytes", "difficulty")
_TIME_LIMIT = {"seconds": 2, "nanos": 0}
_MEMORY_LIMIT = 256_000_000


def records(
    split: str, source: Repository | Path = CODECONTESTS, problems: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the problems of a split with the field names of CodeContests, without solutions.

    A problem without limits gets 2 s and 256 MB, the most common limits.

    Args:
        split: ``valid`` or ``test``.
        source: a repository on the hub, downloaded unless it is in the hub's cache; or a directory with the same files.
        problems: required number of problems; None for any.

    Raises:
        UsageError: if a package is missing, the split cannot be downloaded, or its format or number of problems is
            wrong.
        ReBenchError: if a downloaded file does not match its checksum.
    """
    count = 0
    try:
        for row in _rows(split, source):
            yield _record(row)
            count += 1
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{identity(source)}: split {split} does not have the form of CodeContests ({error})"
        ) from None
    if problems not in (None, count):
        raise UsageError(f"{identity(source)}: split {split} has {count} problems instead of {problems}")


def _rows(split: str, source: Repository | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a split, with the difficulty as text."""
    try:
        from datasets import ClassLabel, load_dataset  # noqa: PLC0415 - only the extra `paper` has it
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{identity(source)}: needs {error.name}; run: pip install -c constraints.txt -e 'common[paper]'"
        ) from None
    pattern = f"data/{split}-*.parquet"
    directory = source.fetch([pattern]) if isinstance(source, Repository) else source
    files = sorted(str(path) for path in directory.glob(pattern))
    if not files:
        raise UsageError(f"{directory}: has no {pattern}")
    rows = load_dataset("parquet", data_files=files, columns=list(_COLUMNS), split="train", streaming=True)
    labels = rows.features["difficulty"]
    for row in rows:
        yield {**row, "difficulty": labels.int2str(row["difficulty"]) if isinstance(labels, ClassLabel) else "unknown"}


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": row["name"],
        "description": row["description"],
        **{kind: {side: list(row[kind][side]) for side in ("input", "output")} for kind in _TESTS},
        "time_limit": row["time_limit"] or _TIME_LIMIT,
        "memory_limit_bytes": row["memory_limit_bytes"] or _MEMORY_LIMIT,
        "difficulty": row["difficulty"],
    }
