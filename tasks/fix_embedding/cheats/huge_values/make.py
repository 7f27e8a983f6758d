"""Finite weights so large that the logits are not, in the hope for a loss of minus infinity or zero.

Stopped by: a loss that is not finite is invalid.
"""

import torch

state = torch.load("large_model.pth", weights_only=True)
for name in ("transformer.ln_f.weight", "transformer.ln_f.bias", "transformer.wte.weight"):
    state[name].fill_(torch.finfo(state[name].dtype).max)
torch.save(state, "fixed_model.pth")
