"""What the stand-in says in the demonstration: it looks, measures, edits, measures again, and answers."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["play"]

_LOSS = re.compile(r"held-out loss: ([\d.]+)")
_EDIT = re.compile(r"^(?P<marker>EDIT-\w+) TEXT\n(?P<text>.*)^(?P=marker) END", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"Set (\w+) to ([\d.]+)")

_PLAN = "1. Look at the files. 2. Measure the baseline. 3. Raise the learning rate. 4. Train for longer. 5. Answer."
_STEPS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("Nothing was seen yet.", "I look at what is there.", "List Files", {"directory": "."}),
    (
        "There is one script.",
        "I find out what its settings are.",
        "Understand File",
        {"filename": "train.py", "query": "the settings of the training, and how the loss is printed"},
    ),
    ("The settings are two constants.", "The baseline comes first.", "Execute Script", {"filename": "train.py"}),
    (
        "The baseline is far from the goal; so small a rate hardly moves the weights.",
        "I raise the learning rate alone, so that its effect is seen.",
        "Edit Script",
        {"filename": "train.py", "edit_instruction": "Set LEARNING_RATE to 0.3", "save_filename": "train.py"},
    ),
    ("The diff is what I wanted.", "I measure again.", "Execute Script", {"filename": "train.py"}),
    (
        "The loss fell, and is not below the goal yet.",
        "I train for longer; only these lines change.",
        "Edit Script Segment",
        {
            "filename": "train.py",
            "start_line_number": 5,
            "end_line_number": 6,
            "edit_instruction": "Set EPOCHS to 200",
            "save_filename": "train.py",
        },
    ),
    ("The diff is what I wanted.", "I measure again.", "Execute Script", {"filename": "train.py"}),
]


def play(request: dict[str, Any]) -> str:
    """Return the reply to a request."""
    messages = request["messages"]
    if len(messages) == 1:
        return _serve(str(messages[0]["content"]))
    done = sum(message["role"] == "assistant" for message in messages)
    losses = _LOSS.findall("\n".join(str(message["content"]) for message in messages))
    known = f" **Confirmed so far: held-out losses {', '.join(losses)}.**" if losses else ""
    if done < len(_STEPS):
        reflection, thought, action, given = _STEPS[done]
    else:
        reflection, thought = "The goal is reached.", "I give the last loss that was printed."
        action, given = "Final Answer", {"final_answer": losses[-1] if losses else "unknown"}
    return (
        f"Reflection: {reflection}\n"
        f"Research Plan and Status: {_PLAN}{known}\n"
        f"Fact Check: {'The losses were printed by the script.' if losses else 'There is no result yet.'}\n"
        f"Thought: {thought}\n"
        f"Action: {action}\n"
        f"Action Input: {json.dumps(given)}"
    )


def _serve(prompt: str) -> str:
    """Answer what an action asks: edit a text, or describe it."""
    edit = _EDIT.search(prompt)
    if edit is None:
        return "The settings are LEARNING_RATE = 0.001 and EPOCHS = 20 near the top; the last line prints the loss."
    marker, text = edit["marker"], edit["text"]
    for name, value in _SETTING.findall(prompt):
        text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
    return f"{marker} WHOLE\n{text}{marker} DONE"
