"""Network: the linear layer all others are made of, by the faster of two libraries."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# PyTorch multiplies single-precision matrices with MKL, which gives processors of other makers than
# its own half of what they can do. oneDNN, which comes with PyTorch as well, goes by what a
# processor can, but PyTorch calls it only from compiled graphs.
_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")

# oneDNN writes a program for every new number of rows, which takes longer than most products. So it
# gets whole chunks, of which there are few sizes, and MKL what is left over.
WHOLE_CHUNK = 256


class Dense(nn.Linear):
    """x W^T + b; on the CPU by oneDNN, when nothing is learned: (..., inputs) -> (..., outputs)."""

    def forward(self, input: Tensor) -> Tensor:
        """Multiply."""
        if _by_onednn(input):
            product: Tensor = torch.ops.mkldnn._linear_pointwise(
                input, self.weight, self.bias, "none", [], ""
            )
            return product
        return super().forward(input)


def _by_onednn(x: Tensor) -> bool:
    """Whether oneDNN can take x (..., inputs), for no gradient is asked of it, and is faster."""
    return (
        _ONEDNN
        and not torch.is_grad_enabled()
        and x.shape[:-1].numel() % WHOLE_CHUNK == 0
        and x.dtype == torch.float32
        and x.device.type == "cpu"
        and not torch.compiler.is_compiling()
    )
