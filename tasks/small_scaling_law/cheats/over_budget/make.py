"""Predict the loss of a run that spends more FLOPs than allowed.

Stopped because an answer may spend at most 1.1 times the target's FLOPs.
"""

import json
from pathlib import Path

from scales import chosen

scale = chosen(Path.cwd())
width = scale.default[0]
answer = {"n_embd": width, "max_iters": scale.steps(width, 1.2 * scale.target_flops), "loss_prediction": 2.0}
Path("answer.json").write_text(json.dumps(answer))
