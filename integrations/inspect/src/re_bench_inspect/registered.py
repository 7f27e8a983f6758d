"""Names in Inspect's registry: ``re_bench/NAME``, whatever the package is called that registers."""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING, Any, TypeVar

import inspect_ai
from inspect_ai._util.error import PrerequisiteError
from pydantic import ValidationError

from re_bench.errors import ReBenchError
from re_bench_inspect.sandbox_config import problems_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Function = TypeVar("Function", bound="Callable[..., object]")

PREFIX = "re_bench/"
"""What the names of tasks and agents begin with: ``inspect eval re_bench/triton_cumsum``."""


def without_package(function: Function) -> Function:
    """Have Inspect's decorator register a function by the name that it is given, with no package's name before it.

    Inspect takes the package from the function's module, which cannot be ``re_bench`` where the core is installed
    editable: its distribution has another name. Functions of no installed package get nothing before their names.
    """
    function.__module__ = builtins.__name__
    return function


def task(name: str, **attributes: Any) -> Callable[[Callable[..., inspect_ai.Task]], Callable[..., inspect_ai.Task]]:
    """Return the decorator that registers a function as ``re_bench/NAME``, whose errors are shown without a traceback.

    Args:
        name: the task's name.
        attributes: of the task, as Inspect's own decorator takes them.
    """

    def register(build: Callable[..., inspect_ai.Task]) -> Callable[..., inspect_ai.Task]:
        @functools.wraps(build)
        def checked(*arguments: Any, **options: Any) -> inspect_ai.Task:
            try:
                return build(*arguments, **options)
            except ReBenchError as error:
                raise PrerequisiteError(f"{PREFIX}{name}: {error}") from None
            except ValidationError as error:
                raise PrerequisiteError(f"{PREFIX}{name}: {problems_of(error)}") from None

        decorate = inspect_ai.task(name=PREFIX + name, **attributes)
        registered: Callable[..., inspect_ai.Task] = decorate(without_package(checked))
        return registered

    return register


def words(values: str | Sequence[str]) -> list[str]:
    """Return the words of an option; Inspect's command line makes a list of what has commas in it."""
    parts = values.split(",") if isinstance(values, str) else map(str, values)
    return [part.strip() for part in parts if part.strip()]
