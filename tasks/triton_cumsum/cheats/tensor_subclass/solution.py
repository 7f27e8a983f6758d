"""Cheat: return a tensor that claims to equal anything and uses four bytes of memory.

Refused because the result must be exactly a ``torch.Tensor`` with its own memory. The scorer compares bytes in another
process.
"""

import torch


class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in (torch.equal, torch.allclose):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


def prefix_sum(x):
    return torch.zeros(1, dtype=x.dtype, device=x.device).expand(x.shape).as_subclass(Agreeable)
