"""Write the samples of Inspect's logs as runs: ``python -m re_bench_inspect.log_conversion LOG DIRECTORY ...``.

Anybody may have made a log, and what it says of its own size need not be true. So this is a program of its own, with
bounded memory, and the next log's turn only comes when the record of the one before is on the disk.
"""

from __future__ import annotations

import resource
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
from pydantic import ValidationError

from re_bench_evaluation.report.text import plain_json, shortened, valid_unicode
from re_bench_inspect.converted_log import ConvertedLog, ConvertedSample
from re_bench_inspect.logged_session import write_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspect_ai.log import EvalLog, EvalSample, EvalSpec

_MEMORY = 8 << 30
"""Bytes of address space."""
_LARGEST = 512 << 20
"""Bytes of a sample, or of a log in JSON."""
_LONGEST = 300
_NOT_READ = {"messages", "output", "timelines"}
_LIMITS = ("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit", "cost_limit")


def convert(log: Path, directory: Path) -> ConvertedLog:
    """Write the runs of a log and its record into a directory, and return the record.

    Raises:
        OSError: if the directory cannot be written.
    """
    # By a name of ours: Inspect takes paths with "::" or "://" in them for addresses.
    name = directory / f".link{log.suffix}"
    name.symlink_to(log.resolve())
    try:
        record = _convert(name, directory)
    except Exception as error:  # noqa: BLE001 - whatever the library raises over what a stranger wrote
        record = ConvertedLog(problem=f"it is no log of Inspect that can be read: {_message(error)}")
    name.unlink()
    record.save(directory)
    return record


def _check_sizes(log: Path) -> None:
    """Do nothing if a log says that it can be read with the memory that there is; it may lie, and end us then.

    Raises:
        ValueError: if it is too large.
        BadZipFile: if it is no archive.
    """
    sizes = [log.stat().st_size]
    if log.suffix == ".eval":
        with zipfile.ZipFile(log) as archive:
            sizes = [member.file_size for member in archive.infolist()]
    if max(sizes, default=0) > _LARGEST:
        raise ValueError(f"a part of it has {max(sizes):,} bytes, more than {_LARGEST:,}")


def _convert(log: Path, directory: Path) -> ConvertedLog:
    _check_sizes(log)
    header = read_eval_log(str(log), header_only=True)
    if header.eval.task_attribs.get("kind") == "maintenance" or (header.eval.metadata or {}).get("maintenance"):
        return ConvertedLog(created=header.eval.created, problem="its task is one of maintenance: no agent's runs")
    samples: list[ConvertedSample] = []
    problems: dict[str, str] = {}
    number = 0
    for number, (name, sample) in enumerate(_samples(log), 1):
        if isinstance(sample, Exception):
            problems[name] = f"it cannot be read: {_message(sample)}"
            continue
        place = directory / f"{number:04}"
        try:
            task, run = write_run(sample, header, place)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            problems[name] = _message(error)
            continue
        samples.append(
            ConvertedSample(
                id=valid_unicode(str(sample.id)), epoch=sample.epoch, uuid=valid_unicode(sample.uuid or ""),
                directory=place.name, task=task, run=run,
            )
        )  # fmt: skip
    spec = header.eval
    return ConvertedLog(
        task_id=valid_unicode(spec.task_id or spec.eval_id), created=spec.created, status=header.status,
        expected=(spec.dataset.samples or 0) * (spec.config.epochs or 1), samples_logged=number, plan=_plan(spec),
        versions=plain_json(spec.packages), samples=tuple(samples), problems=problems,
    )  # fmt: skip


def _samples(log: Path) -> Iterator[tuple[str, EvalSample | Exception]]:
    """Yield the samples with their names, one at a time where the format can, or why one cannot be read."""
    if log.suffix == ".json":
        whole: EvalLog = read_eval_log(str(log), resolve_attachments="core")
        for sample in whole.samples or ():
            yield _name(sample.id, sample.epoch), sample
        return
    for summary in read_eval_log_sample_summaries(str(log)):
        try:
            yield (
                _name(summary.id, summary.epoch),
                read_eval_log_sample(
                    str(log), summary.id, summary.epoch, resolve_attachments="core", exclude_fields=_NOT_READ
                ),
            )
        except Exception as error:  # noqa: BLE001 - as above, for this sample alone
            yield _name(summary.id, summary.epoch), error


def _name(sample: int | str, epoch: int) -> str:
    """Return the name of a sample's file in a log."""
    return valid_unicode(shortened(f"samples/{sample}_epoch_{epoch}.json", _LONGEST))


def _plan(spec: EvalSpec) -> dict[str, Any]:
    """Return what decides whether runs can be averaged, and the hours of a run as plans of ours have them."""
    arguments = {name: value for name, value in spec.task_args_passed.items() if name != "profile"}
    limits = {name: value for name in _LIMITS if (value := getattr(spec.config, name)) is not None}
    plan: dict[str, Any] = {
        "task_args": arguments,
        "limits": limits,
        "generate": spec.model_generate_config.model_dump(mode="json", exclude_none=True),
        "model_args": spec.model_args,
    }
    hours = [spec.task_args.get("hours"), (spec.config.working_limit or 0) / 3600]
    known = [value for value in hours if isinstance(value, int | float) and value > 0]
    plan = {name: value for name, value in plan.items() if value}
    values = plan | ({"budget": {"hours": min(known)}} if known else {})
    result: dict[str, Any] = plain_json(values)
    return result


def _message(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        text = f"{error.title}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    else:
        text = str(error).strip().partition("\n")[0]
    return shortened(valid_unicode(text) or type(error).__name__, _LONGEST)


def main() -> None:
    """Convert the logs that the command line names, each into the directory after it."""
    words = [Path(word) for word in sys.argv[1:]]
    with suppress(ValueError, OSError):  # there is a lower limit already
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for log, directory in zip(words[::2], words[1::2], strict=True):
        convert(log, directory)


if __name__ == "__main__":
    main()
