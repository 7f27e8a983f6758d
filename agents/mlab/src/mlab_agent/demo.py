"""A demonstration: a small task, a script that trains badly, and scripted replies of a model that solves it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_INSTRUCTIONS = """\
`train.py` fits a line and a square to data by gradient descent, and prints the loss on held-out data. Bring that loss
below 0.02 by changing its settings in `train.py`, the learning rate and the number of epochs; leave the data, the model
and the way in which the loss is computed as they are. It must not take longer than ten seconds. Give the loss that the
script then prints as your final answer, as a number and nothing else.
"""

_TRAIN = '''\
"""Fit y = a + b x + c x^2 by gradient descent, in plain Python."""

import random

LEARNING_RATE = 0.001
EPOCHS = 20


def data(count, seed):
    numbers = random.Random(seed)
    xs = [numbers.uniform(-1, 1) for _ in range(count)]
    return [(x, 0.5 - 1.5 * x + 2.0 * x * x + numbers.gauss(0, 0.1)) for x in xs]


def predict(weights, x):
    return weights[0] + weights[1] * x + weights[2] * x * x


def loss(weights, points):
    return sum((predict(weights, x) - y) ** 2 for x, y in points) / len(points)


def train(points):
    weights = [0.0, 0.0, 0.0]
    for _ in range(EPOCHS):
        errors = [(predict(weights, x) - y, x) for x, y in points]
        for power in range(3):
            gradient = sum(2 * error * x**power for error, x in errors) / len(points)
            weights[power] -= LEARNING_RATE * gradient
    return weights


print(f"held-out loss: {loss(train(data(200, 0)), data(100, 1)):.4f}")
'''

_LOSS = re.compile(r"held-out loss: ([\d.]+)")
_EDIT_PROMPT = re.compile(r"^(?P<marker>EDIT-\w+) TEXT\n(?P<text>.*)^(?P=marker) END", re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(r"Set (\w+) to ([\d.]+)")

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


def create_task(directory: Path) -> None:
    """Write the workspace into a new directory."""
    directory.mkdir(parents=True)
    (directory / "train.py").write_text(_TRAIN, encoding="utf-8")
    (directory / "instructions.txt").write_text(_INSTRUCTIONS, encoding="utf-8")


def reply_to(request: dict[str, Any]) -> str:
    """Return the scripted reply to a request for a chat completion."""
    messages = request["messages"]
    if len(messages) == 1:
        return _helper_reply(str(messages[0]["content"]))
    done = sum(message["role"] == "assistant" for message in messages)
    losses = _LOSS.findall("\n".join(str(message["content"]) for message in messages))
    results = f" **Confirmed so far: held-out losses {', '.join(losses)}.**" if losses else ""
    if done < len(_STEPS):
        reflection, thought, action, arguments = _STEPS[done]
    else:
        reflection, thought = "The goal is reached.", "I give the last loss that was printed."
        action, arguments = "Final Answer", {"final_answer": losses[-1] if losses else "unknown"}
    return (
        f"Reflection: {reflection}\n"
        f"Research Plan and Status: {_PLAN}{results}\n"
        f"Fact Check: {'The losses were printed by the script.' if losses else 'There is no result yet.'}\n"
        f"Thought: {thought}\n"
        f"Action: {action}\n"
        f"Action Input: {json.dumps(arguments)}"
    )


def _helper_reply(prompt: str) -> str:
    """Return the reply to an action's prompt: an edited text, or a description."""
    edit = _EDIT_PROMPT.search(prompt)
    if edit is None:
        return "The settings are LEARNING_RATE = 0.001 and EPOCHS = 20 near the top; the last line prints the loss."
    marker, text = edit["marker"], edit["text"]
    for name, value in _INSTRUCTION.findall(prompt):
        text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
    return f"{marker} WHOLE\n{text}{marker} DONE"
