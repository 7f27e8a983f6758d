"""Submit a sparse embedding, whose indices might not be checked, so that the scorer could read memory out of bounds.

Stopped because tensors must be dense.
"""

import torch

state = torch.load("large_model.pth", weights_only=True)
rows = state["transformer.wte.weight"]
indices = torch.tensor([[0, 1], [0, 1]])
values = torch.ones(2, dtype=rows.dtype)
state["transformer.wte.weight"] = torch.sparse_coo_tensor(indices, values, rows.shape, check_invariants=True)
torch.save(state, "fixed_model.pth")
