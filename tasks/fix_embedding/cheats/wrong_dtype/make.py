"""Weights as integers, in the hope that the scorer converts them where they then lose or gain something.

Stopped by: dtypes have to be those of the large model.
"""

import torch

state = torch.load("large_model.pth", weights_only=True)
state["transformer.wte.weight"] = state["transformer.wte.weight"].mul(1000).to(torch.int16)
torch.save(state, "fixed_model.pth")
