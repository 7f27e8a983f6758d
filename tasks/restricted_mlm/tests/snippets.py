"""Small models: an embedding, one expression, a linear layer. The expression stands on line ``LINE``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE = 33

_SOURCE = Path(__file__).with_name("snippet_model.txt").read_text(encoding="utf-8")

INNOCENT = {
    "matmul": "y = relu(x) @ self.weight",
    "einsum": "y = torch.einsum('btd,de->bte', x, self.weight)",
    "einsum of two": "y = torch.einsum('btd,bsd->bts', x, x) @ x",
    "einsum of three": "y = torch.einsum('btd,dk,bsk->btk', x, self.weight, x)",
    "baddbmm and addmm": "y = torch.baddbmm(x, x, self.weight.expand(2, 8, 8)) + torch.addmm(x[0], x[0], self.weight)",
    "dot, outer": "y = x * torch.dot(*self.weight[:2]) + torch.outer(*self.weight[:2])[0]",
    "matrix times vector": "y = x + (x @ self.weight[0])[..., None] + torch.mv(x[0], self.weight[0])[:, None]",
    "sum": "y = x * x.sum() + x.sum((1, 2), keepdim=True) + torch.sum(x, 1, True)",
    "arithmetic": "y = 1 - x - (-x) + x * 0.25 - 2 + torch.add(x, x, alpha=3) - torch.rsub(x, 1.0)",
    "relu": "y = relu(x) + torch.relu(x) + x.relu() + nn.ReLU()(x)",
    "in place": "y = x.clone(); y *= 2; y += x; y.relu_()",
    "slice assignment": "y = torch.zeros_like(x); y[:, 1:] = x[:, :-1]; y[:, 0] = self.weight[0]",
    "step function": "y = relu(1e30 * x + 1) - relu(1e30 * x)",
    "step function by an infinity": "y = relu(1 - relu(x * 1e38 * 1e38))",
    "reshape, view": "y = x.transpose(1, 2).reshape(2, -1).view(2, 8, 16).mT.unsqueeze(0).squeeze(0)",
    "flatten, unflatten": "y = x.flatten(1).unflatten(1, (16, 8))",
    "permute, expand": "y = x.permute(1, 0, 2).permute(1, 0, 2) + self.weight[0].expand_as(x)",
    "broadcast": "y = x + torch.broadcast_to(x[:1], x.shape)",
    "cat, stack": "y = torch.cat([x[:, :3], x[:, 3:]], 1) + torch.stack(x.unbind(1), 1)",
    "hstack": "y = torch.hstack([x[:, :3], x[:, 3:]]) + torch.concat([x[:1], x[1:]])",
    "split, chunk": "y = torch.cat(x.split([3, 5], -1), -1) + torch.cat(x.chunk(2, -1), -1)",
    "pad, unfold": "y = torch.nn.functional.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1).sum(-1)",
    "roll, flip": "y = x.roll(1, 1) + x.flip(1) + x.rot90(1, (1, 2)).rot90(-1, (1, 2))",
    "repeat": "y = x.repeat(1, 1, 2)[..., ::2] + x.repeat_interleave(2, 1)[:, ::2] + x.tile(1, 1, 2)[..., :8]",
    "indexing": "y = x[:, torch.arange(16)] + x[torch.arange(2)[:, None], tokens * 0]",
    "index_select": "y = x.index_select(1, torch.arange(16))",
    "gather": "y = x.gather(1, tokens.unsqueeze(-1).expand(-1, -1, 8) * 0)",
    "pairs of tokens": "y = self.pairs[tokens * 65 + tokens.roll(1, 1)]",
    "diagonal": "y = torch.diagonal(x @ x.mT, dim1=1, dim2=2).unsqueeze(-1) * x",
    "as_strided": "y = torch.as_strided(x, (2, 16, 8), (128, 8, 1))",
    "movedim, narrow": "y = x.movedim(1, 0).movedim(0, 1).swapaxes(1, 2).swapaxes(1, 2).narrow(1, 0, 16)",
    "contiguous": "y = x.transpose(1, 2).contiguous().transpose(1, 2)",
    "constants": "y = x + torch.full((8,), 3.0) + torch.eye(8)[0] + torch.zeros(16, 8)",
    "constants like others": "y = x + torch.ones_like(x) + x.new_full((8,), 2.0) + x.new_zeros(8)",
    "literal constants": "y = x * torch.tensor([0.5]) + torch.arange(16)[:, None] * 0.5 - torch.scalar_tensor(2.0)",
    "conversion to what it is": "y = x.float() + x.to(torch.float32) + self.embedding(tokens.long())",
    "dropout in evaluation": "y = self.dropout(x)",
    "loop over layers": "y = x\n        for layer in [self.head] * 3: y = y + layer(x)[..., :8]",
    "loop over positions": "y = torch.stack([x[:, i] * (0.5 if i % 2 else 0.25) for i in range(16)], 1)",
}
"""Name to a statement that sets ``y`` [2, 16, 8] from ``x``."""

FORBIDDEN = {
    "x.exp()": "aten.exp.default",
    "x.exp_()": "aten.exp.default",
    "x / (x + 1)": "aten.div.Tensor",
    "x / 2": "aten.div.Tensor",
    "1 / x": "aten.reciprocal.default",
    "x * (x > x.mT.mT)": "aten.gt.Tensor",
    "torch.softmax(x, -1)": "aten.softmax.int",
    "x.softmax(-1)": "aten.softmax.int",
    "nn.functional.softmax(x, -1)": "aten.softmax.int",
    "x * self.weight.softmax(-1)[0]": "aten.softmax.int",
    "x.log_softmax(-1)": "aten.log_softmax.int",
    "x.log()": "aten.log.default",
    "x.tanh()": "aten.tanh.default",
    "x.sigmoid()": "aten.sigmoid.default",
    "nn.functional.silu(x)": "aten.silu.default",
    "nn.functional.gelu(x)": "aten.gelu.default",
    "x ** 2": "aten.pow.Tensor_Scalar",
    "x ** 0.5": "aten.pow.Tensor_Scalar",
    "2 ** x": "aten.pow.Scalar",
    "x * x.mean(-1, keepdim=True)": "aten.mean.dim",
    "x * x.amax(-1, keepdim=True)": "aten.amax.default",
    "x * x.max(-1, keepdim=True)[0]": "aten.max.dim",
    "torch.maximum(x, -x)": "aten.maximum.default",
    "x * x.prod(-1, keepdim=True)": "aten.prod.dim_int",
    "nn.functional.layer_norm(x, (8,))": "aten.layer_norm.default",
    "nn.functional.rms_norm(x, (8,))": "aten.rms_norm.default",
    "x * x.norm(dim=-1, keepdim=True)": "aten.(linalg_vector_norm|norm)",
    "nn.functional.normalize(x)": "aten.(linalg_vector_norm|norm)",
    "torch.where(x > 0, x, 0.0)": "aten.gt.Scalar",
    "x.masked_fill(self.flags, 0.0)": "aten.masked_fill.Scalar",
    "x.abs()": "aten.abs.default",
    "x.sqrt()": "aten.sqrt.default",
    "x.rsqrt()": "aten.rsqrt.default",
    "x.clamp(min=0)": "aten.clamp.default",
    "nn.functional.relu6(x)": "aten.(relu6|hardtanh).default",
    "nn.functional.leaky_relu(x)": "aten.leaky_relu.default",
    "nn.functional.threshold(x, 0.5, 0.0)": "aten.threshold.default",
    "x.cumsum(1)": "aten.cumsum.default",
    "x.sort(-1)[0]": "aten.sort.default",
    "x.topk(8, -1)[0]": "aten.topk.default",
    "nn.functional.scaled_dot_product_attention(x, x, x)": "aten.scaled_dot_product_attention.default",
    "nn.functional.conv1d(x.mT, self.weight[..., None]).mT": "aten.conv1d.default",
    "torch.fft.fft(x).real": "aten.fft_fft.default",
    "x @ torch.linalg.inv(self.weight)": "aten.linalg_inv",
    "nn.functional.dropout(x, 0.5)": "aten.native_dropout.default.*evaluation mode",
    "x * torch.rand_like(x)": "aten.rand_like.default",
    "x * torch.empty_like(x)": "aten.empty_like.default",
    "x.to(torch.int64) * 1.0": "aten._to_copy.default",
    "x * x.bool()": "aten._to_copy.default",
    "x.double().float()": "aten._to_copy.default",
    "x.half().float()": "aten._to_copy.default",
    "x * x.view(torch.int32)": "aten.view.dtype",
    "x * (tokens == 3).unsqueeze(-1)": "aten.eq.Scalar",
    "x.round()": "aten.round.default",
    "x % 1": "aten.remainder.Scalar",
    "x // 1": "aten.floor_divide.default",
    "x.sign()": "aten.sign.default",
    "x.sin()": "aten.sin.default",
    "torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))": "aten.gt.Scalar",
    "torch.cdist(x, x) @ x": "aten.cdist.default",
    "exponential(x)": "aten.exp.default",
    "Exponential.apply(x)": "aten.exp.default",
    "made_up(x)": "made_up.exponential.default",
    "patched(x)": "aten.exp.default",
    "x * x.sum().item()": "aten.item.default",
    "x.unsqueeze(-1).sum(-1, dtype=torch.int64) * 1.0": "aten.sum.dim_IntList: with dtype=torch.int64",
    "x * x.unsqueeze(-1).sum(-1, dtype=torch.bool)": "aten.sum.dim_IntList: with dtype=torch.bool",
    "x.sum(-1, keepdim=True, dtype=torch.float64) * x": "aten.sum.dim_IntList: with dtype=torch.float64",
    "x + float('inf')": "the constant inf is not finite",
    "x + torch.full((8,), float('nan'))": "the constant nan is not finite",
    "torch.ones(8, dtype=torch.float64) + x": "torch.float64",
    "x if x.sum() > 0 else -x": "depends on values of a tensor",
    "x * torch.from_numpy(x.detach().numpy())": "cannot be written down",
    "self.count(x)": "forward changes 'counter'",
    "self.embedding(tokens.fill_(3))": "forward changes its input",
}
"""Expression of ``y`` to what the refusal says of it."""


QUICK = (
    "x.exp()", "1 / x", "torch.softmax(x, -1)", "x ** 2", "nn.functional.layer_norm(x, (8,))",
    "torch.where(x > 0, x, 0.0)", "x.cumsum(1)", "nn.functional.dropout(x, 0.5)", "x * torch.empty_like(x)",
    "x.to(torch.int64) * 1.0", "x * x.view(torch.int32)", "exponential(x)", "Exponential.apply(x)", "made_up(x)",
    "patched(x)", "x * x.sum().item()", "x.unsqueeze(-1).sum(-1, dtype=torch.int64) * 1.0", "x + float('inf')",
    "torch.ones(8, dtype=torch.float64) + x", "x if x.sum() > 0 else -x", "x * torch.from_numpy(x.detach().numpy())",
    "self.count(x)", "self.embedding(tokens.fill_(3))",
)  # fmt: skip
"""Forbidden expressions of all kinds; the others are slow tests."""


def all_of(statements: Iterable[str]) -> str:
    """Return a statement that sets ``y`` to a sum of what ``statements`` set it to, each with another weight."""
    lines = [f"{text}\n        total = total + {0.5 + 0.01 * n} * y" for n, text in enumerate(statements)]
    return "\n        ".join(["total = x - x", *lines, "y = total"])


def source(statement: str) -> str:
    """Return a model file with ``statement`` in forward, on line ``LINE``."""
    text = _SOURCE.replace("STATEMENT", statement)
    assert text.splitlines()[LINE - 1].strip() == statement.splitlines()[0]
    return text
