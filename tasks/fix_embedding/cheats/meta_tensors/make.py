"""Tensors without memory, in the hope that the scorer's own memory shines through.

Stopped by: tensors have to be on the CPU; and the scorer copies their bytes from memory that it made itself.
"""

import torch

state = torch.load("large_model.pth", weights_only=True)
state["transformer.wte.weight"] = state["transformer.wte.weight"].to("meta")
torch.save(state, "fixed_model.pth")
