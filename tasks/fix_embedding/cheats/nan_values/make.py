"""NaN in the embedding: comparisons with a loss that is no number are all false.

Stopped by: values have to be finite; and a loss that is not makes a score invalid, too.
"""

import torch

state = torch.load("large_model.pth", weights_only=True)
state["transformer.wte.weight"].fill_(float("nan"))
torch.save(state, "fixed_model.pth")
