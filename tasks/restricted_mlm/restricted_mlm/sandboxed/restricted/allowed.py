"""The table of allowed operators. A model may consist of these, and nothing else is ever run.

Linear layers, embeddings, matrix products, sums, addition, subtraction and multiplication, relu, indexing and
reshaping, and constants. Operators that only move values may copy, but compute nothing. A name from a model is looked
up here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

DTYPES = {"float32": torch.float32, "int64": torch.int64}
"""The dtypes of every tensor of a model. int64 is for token ids and positions."""
GETITEM = "getitem"
"""Takes one piece of what an operator with several results gave; no operator of torch."""

_aten = torch.ops.aten

Kind = Literal["product", "arithmetic", "sum", "view", "copy", "constant"]
"""What an operator does, by which its work is counted; a view costs nothing."""


@dataclass(frozen=True)
class Operator:
    """What an allowed name stands for."""

    call: Any
    """The overload of ATen that is run."""
    kind: Kind
    contracted: int = 0
    """Of a product: the position of the argument whose last dimension is summed over."""
    nonlinear: str = ""
    """The argument, if any, in which it is no polynomial: what relu clips, or the index of a value that is looked up.
    Integers made from tokens may not stand there where the result is integers too; see plan."""

    @property
    def many(self) -> bool:
        """Whether it returns a list of tensors."""
        return str(self.call._schema.returns[0].type) == "List[Tensor]"  # noqa: SLF001 - torch has no other way


def _same(kind: Kind, *overloads: Any, nonlinear: str = "") -> dict[str, Operator]:
    """Return entries for overloads that are called as they are named."""
    return {str(overload): Operator(overload, kind, nonlinear=nonlinear) for overload in overloads}


TABLE: dict[str, Operator] = {
    "aten.linear.default": Operator(_aten.linear.default, "product"),
    "aten.matmul.default": Operator(_aten.matmul.default, "product"),
    "aten.mm.default": Operator(_aten.mm.default, "product"),
    "aten.bmm.default": Operator(_aten.bmm.default, "product"),
    "aten.mv.default": Operator(_aten.mv.default, "product"),
    "aten.addmm.default": Operator(_aten.addmm.default, "product", contracted=1),
    "aten.baddbmm.default": Operator(_aten.baddbmm.default, "product", contracted=1),
    **_same("arithmetic", _aten.add.Tensor, _aten.add.Scalar, _aten.sub.Tensor, _aten.sub.Scalar),
    **_same("arithmetic", _aten.rsub.Tensor, _aten.rsub.Scalar, _aten.mul.Tensor, _aten.mul.Scalar),
    **_same("arithmetic", _aten.neg.default),
    **_same("arithmetic", _aten.relu.default, nonlinear="self"),
    # Their argument dtype could truncate or compare; the parser refuses an argument of that name everywhere.
    **_same("sum", _aten.sum.default, _aten.sum.dim_IntList),
    # `view` of a tensor with other strides than eager has may fail; `reshape` is the same and never does.
    "aten.view.default": Operator(_aten.reshape.default, "view"),
    "aten._unsafe_view.default": Operator(_aten.reshape.default, "view"),
    **_same("view", _aten.reshape.default, _aten.permute.default, _aten.transpose.int, _aten.t.default),
    **_same("view", _aten.expand.default, _aten.unsqueeze.default),
    **_same("view", _aten.squeeze.default, _aten.squeeze.dim, _aten.squeeze.dims),
    **_same("view", _aten.slice.Tensor, _aten.select.int, _aten.unfold.default, _aten.diagonal.default),
    **_same("view", _aten.split.Tensor, _aten.split_with_sizes.default, _aten.unbind.int, _aten.as_strided.default),
    **_same("copy", _aten.embedding.default, _aten.index.Tensor, nonlinear="indices"),
    **_same("copy", _aten.index_select.default, _aten.gather.default, nonlinear="index"),
    **_same("copy", _aten.cat.default, _aten.stack.default, _aten.flip.default, _aten.roll.default),
    **_same("copy", _aten.repeat.default, _aten.constant_pad_nd.default),
    **_same("copy", _aten.clone.default, _aten.contiguous.default),
    # What assignments to slices become. They would convert silently; see plan.
    **_same("copy", _aten.copy.default, _aten.slice_scatter.default, _aten.select_scatter.default),
    "aten.full.default": Operator(_aten.full.default, "constant"),
}
