"""Add a separate unembedding to the tied one.

Stopped because tensor names must equal the large model's.
"""

import torch

state = torch.load("large_model.pth", weights_only=True)
state["lm_head.weight"] = state["transformer.wte.weight"]
torch.save(state, "fixed_model.pth")
