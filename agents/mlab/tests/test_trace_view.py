"""What a trace shows on a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mlab_agent.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_control_characters_and_halves_of_surrogate_pairs_are_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\x1b]0;title\x07 \x1b[2J \ud83d \u202e right\tand\nnew line"
    events = [
        {"kind": "start", "task": "a task", "elapsed": 0.0},
        {"kind": "message", "text": text, "elapsed": 1.0},
        {"kind": "end", "reason": "final answer", "detail": "", "answer": text, "elapsed": 2.0},
    ]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert main(["show", str(tmp_path / "trace.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\\x1b]0;title\\x07 \\x1b[2J \\ud83d \\u202e right\tand\nnew line") == 2
    assert "\x1b" not in shown
