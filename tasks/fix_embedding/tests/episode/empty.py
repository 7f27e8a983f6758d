"""Makes the corrupted embedding zero, so that all tokens are equally likely, which is better than wrong ones."""

import torch

state = torch.load("large_model.pth", weights_only=True)
state["transformer.wte.weight"].zero_()
torch.save(state, "fixed_model.pth")
