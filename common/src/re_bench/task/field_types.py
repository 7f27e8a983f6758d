"""The types of value in a manifest that pydantic has no name for."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from re_bench.task.profile_names import is_profile


def _check_profile(value: str) -> str:
    if not is_profile(value):
        raise ValueError("Input should be 'cpu', 'gpu' or 'paper', or one of these, a dash and a word")
    return value


def _check_text(value: str) -> str:
    if not value.strip():
        raise ValueError("Input should be text that is not empty")
    return value


def _check_line(value: str) -> str:
    if not value.strip() or value.splitlines() != [value]:
        raise ValueError("Input should be one line of text that is not empty")
    return value


def _check_file_name(value: str) -> str:
    path = PurePosixPath(value)
    plain = str(path) == value != "." and "\\" not in value and value.isprintable()
    if not plain or path.is_absolute() or ".." in path.parts:
        raise ValueError("Input should be a file's name relative to the submission, without .. and not absolute")
    return value


def _check_regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"Input should be a regular expression ({error})") from error
    return value


def _check_not_empty(value: tuple[str, ...]) -> tuple[str, ...]:
    # Field(min_length=1) would count the right entries only, and call a list of wrong ones empty.
    if not value:
        raise ValueError("Input should be a list that is not empty")
    return value


ProfileName = Annotated[str, AfterValidator(_check_profile)]
Text = Annotated[str, AfterValidator(_check_text)]
Line = Annotated[str, AfterValidator(_check_line)]
TaskId = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
FolderName = Annotated[str, Field(pattern="^[a-z][a-z0-9_-]*$")]
Regex = Annotated[str, AfterValidator(_check_regex)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
FileNames = Annotated[tuple[FileName, ...], Field(strict=False), AfterValidator(_check_not_empty)]
Words = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_check_not_empty)]
ProfileNames = Annotated[tuple[ProfileName, ...], Field(strict=False), AfterValidator(_check_not_empty)]
