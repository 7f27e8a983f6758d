"""Says beside an answer over the budget that it spends little.

Stopped by: an answer has three keys and no others; what it spends is computed from them.
"""

import json
from pathlib import Path

from scales import chosen

scale = chosen(Path.cwd())
width = scale.default[0]
steps = scale.steps(width, 10 * scale.target_flops)
answer = {"n_embd": width, "max_iters": steps, "loss_prediction": 2.0, "flops": scale.target_flops}
Path("answer.json").write_text(json.dumps(answer))
