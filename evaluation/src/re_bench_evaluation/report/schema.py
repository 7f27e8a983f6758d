"""Describe the JSON of ``re-bench report --json`` as a JSON schema, with the docstrings of the data as descriptions."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from re_bench.attempts.log import Status
from re_bench.normalise import How
from re_bench.records import RunState
from re_bench_evaluation.report import data
from re_bench_evaluation.report.findings import Finding, Scan
from re_bench_evaluation.report.verdicts import Verdict


def json_schema() -> dict[str, Any]:
    """Return the schema."""
    for kind in (*vars(data).values(), Scan, Finding, Verdict):
        if is_dataclass(kind):
            setattr(kind, "__pydantic_config__", ConfigDict(use_attribute_docstrings=True))  # noqa: B010 - not declared
    hidden = {"Status": Status, "How": How, "RunState": RunState, "Scan": Scan, "Verdict": Verdict}
    vars(data).update(hidden)  # the module imports them for type checkers only
    adapter = TypeAdapter(data.ReportData)
    schema = adapter.json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
