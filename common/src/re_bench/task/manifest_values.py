"""The kinds of value that a manifest holds, each refused in words that say what it should have been."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from re_bench.task.manifest_errors import said, unknown_key

ProfileName = Literal["cpu", "gpu", "paper"]
PROFILES: tuple[str, ...] = get_args(ProfileName)
"""The sizes at which a task may run."""


def _require(words: str, *, holds: bool) -> None:
    if not holds:
        raise ValueError(words)


def _note(value: str) -> str:
    # TOML files are UTF-8, which has no lone surrogates.
    _require("text that UTF-8 can hold", holds=not any("\ud800" <= char <= "\udfff" for char in value))
    return value


def _text(value: str) -> str:
    _require("text that is not empty", holds=value.strip() != "")
    return _note(value)


def _line(value: str) -> str:
    one = value.strip() != "" and value.splitlines() == [value]
    _require("one line of text that is not empty", holds=one)
    return _note(value)


def _id(value: str) -> str:
    words = "a name of lower-case letters, digits and _ that begins with a letter"
    _require(words, holds=re.fullmatch(r"[a-z][a-z0-9_]*", value) is not None)
    return value


def _cheat_name(value: str) -> str:
    words = "the name of a folder: lower-case letters, digits, _ and -, beginning with a letter"
    _require(words, holds=re.fullmatch(r"[a-z][a-z0-9_-]*", value) is not None)
    return value


def _file_name(value: str) -> str:
    path = PurePosixPath(value)
    plain = str(path) == value != "." and "\\" not in value and value.isprintable()
    words = "the name of a file relative to the submission, without .. and not absolute"
    _require(words, holds=plain and not path.is_absolute() and ".." not in path.parts)
    return value


def _top_name(value: str) -> str:
    name = value.removeprefix("!")
    words = "the name of a file or directory at the submission's top, or ! and such a name"
    _require(words, holds=name not in ("", ".", "..") and "/" not in name and name.isprintable())
    return value


def _alike(value: tuple[str, ...]) -> tuple[str, ...]:
    kinds = {name.startswith("!") for name in _some(value)}
    _require("names that all begin with ! or all do not", holds=len(kinds) == 1)
    return value


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from error
    return _note(value)


def _some(value: tuple[str, ...]) -> tuple[str, ...]:
    # Field(min_length=1) would count the right entries only, and call a list of wrong ones empty.
    _require("a list that is not empty", holds=value != ())
    return value


def _profile_name(value: str) -> str:
    if value not in PROFILES:
        raise said(unknown_key(value, PROFILES))
    return value


Note = Annotated[str, AfterValidator(_note)]
Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, AfterValidator(_line)]
Files = Annotated[tuple[Annotated[str, AfterValidator(_file_name)], ...], Field(strict=False), AfterValidator(_some)]
TopNames = Annotated[tuple[Annotated[str, AfterValidator(_top_name)], ...], Field(strict=False), AfterValidator(_alike)]
Words = Annotated[tuple[Note, ...], Field(strict=False), AfterValidator(_some)]
Regex = Annotated[str, AfterValidator(_regex)]
TaskId = Annotated[str, AfterValidator(_id)]
CheatName = Annotated[str, AfterValidator(_cheat_name)]
ProfileKey = Annotated[str, AfterValidator(_profile_name)]
ProfileNames = Annotated[tuple[ProfileName, ...], Field(strict=False), AfterValidator(_some)]
