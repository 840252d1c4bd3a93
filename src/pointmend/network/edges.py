"""Network: convolutions over the edges of a neighbour graph, without ever storing the edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from pointmend.chunks import in_chunks, pick, take

from .dense import Dense

# Rows handled at once by each thread: 256 rows x 16 neighbours x 64 channels stay in its L2 cache.
CHUNK = 256

# Among spatial candidates the similarity of the first channels decides: which half of 48 near
# points are most alike needs no more, and reading all channels would cost as much as the layer.
SIMILARITY_CHANNELS = 16


def neighbour_max(table: Tensor, index: Tensor) -> Tensor:
    """
    Maximum over each row's neighbours: out[i, c] = max_j table[index[i, j], c].

    Parameters
    ----------
    table : (M, C).
    index : (Q, k) rows of table.

    Returns
    -------
    (Q, C)
    """
    on_cpu = table.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_cpu and torch.is_grad_enabled() and table.requires_grad:
        result: Tensor = _NeighbourMax.apply(table, index)  # type: ignore[no-untyped-call]
        return result
    return _gather(table, index).amax(dim=1)


def _gather(table: Tensor, index: Tensor) -> Tensor:
    """The rows of a table (M, C) at (Q, k) indices: (Q, k, C)."""
    return table.index_select(0, index.reshape(-1)).reshape(*index.shape, table.shape[1])


class _NeighbourMax(torch.autograd.Function):
    """
    The maximum, and which neighbour it came from: the gradient goes there, in one scatter.

    PyTorch's own maximum with places is ten times slower than the one without. So the place j
    rides in the lowest bits of the numbers compared; the maximum brings it along. Neighbours
    that differ by less than those bits (2^-19 of their size, for k = 16) count as equal.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, index: Tensor) -> Tensor:
        k, width = index.shape[1], table.shape[1]
        low_bits = (1 << (k - 1).bit_length()) - 1
        places = torch.arange(k, dtype=torch.int32).unsqueeze(1)
        winner = torch.empty(len(index), width, dtype=torch.int64)
        for first in range(0, len(index), CHUNK):
            rows = index[first : first + CHUNK]
            bits = _gather(table, rows).view(torch.int32)
            bits.bitwise_and_(~low_bits).bitwise_or_(places)
            place = bits.view(torch.float32).amax(dim=1).view(torch.int32).bitwise_and_(low_bits)
            torch.gather(rows, 1, place.long(), out=winner[first : first + CHUNK])
        ctx.save_for_backward(winner)
        ctx.rows = len(table)  # type: ignore[attr-defined]
        return table.gather(0, winner)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        (winner,) = ctx.saved_tensors  # type: ignore[attr-defined]
        width = winner.shape[1]
        flat = winner.mul(width).add_(torch.arange(width)).reshape(-1)
        result = gradient.new_zeros(ctx.rows * width)  # type: ignore[attr-defined]
        result.scatter_add_(0, flat, gradient.reshape(-1))
        return result.view(-1, width), None


class EdgeConvolution(nn.Module):
    """
    One-layer edge convolution of DGCNN: max_j (A x_i + B (x_j - x_i)).

    The maximum runs over j only, so it equals A x_i - B x_i + max_j B x_j: the products are made
    per point, not per edge.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.centre = Dense(inputs, outputs)
        self.edge = Dense(inputs, outputs, bias=False)

    def forward(self, x: Tensor, index: Tensor, own: Tensor | None = None) -> Tensor:
        """
        Convolve.

        Parameters
        ----------
        x : (M, inputs).
        index : (U, k) neighbour rows of x.
        own : (U,) rows of x of the points themselves; all of them in order (U = M) when None.

        Returns
        -------
        (U, outputs)
        """
        edge = self.edge(x)

        def convolve(rows: slice) -> Tensor:
            itself = pick(own, rows)
            result: Tensor = self.centre(take(x, itself)) - take(edge, itself)
            return result + neighbour_max(edge, index[rows])

        return in_chunks(convolve, index, CHUNK)


@torch.no_grad()
def feature_graph(x: Tensor, k: int, patch_points: int, candidates: Tensor | None = None) -> Tensor:
    """
    The dynamic graph: each point's k nearest in feature space, itself left out.

    Parameters
    ----------
    x : (M, C) features.
    k : neighbours wanted.
    patch_points : points of each patch; patches do not see each other.
    candidates : (U, K) rows of x to choose among, the point itself first; the whole patch (and
        U = M) when None.

    Returns
    -------
    (U, k) rows of x.
    """
    if candidates is None:
        patches = x.reshape(-1, patch_points, x.shape[1])
        k = min(k, patch_points - 1) if patch_points > 1 else 1
        norms = patches.square().sum(-1)
        # |a - b|^2 without |a|^2, which does not change the order within a row.
        distance = norms.unsqueeze(1) - 2.0 * patches @ patches.transpose(1, 2)
        distance.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        index = distance.topk(k, largest=False, sorted=False).indices
        first_row = torch.arange(len(patches), device=x.device)[:, None, None] * patch_points
        return (index + first_row).reshape(len(x), k)
    others = candidates[:, 1:]
    if others.shape[1] <= k:
        return others
    keys = x[:, :SIMILARITY_CHANNELS].contiguous()
    norms = keys.square().sum(-1)
    graph = torch.empty(len(others), k, dtype=torch.int64, device=x.device)
    for first in range(0, len(others), CHUNK):
        rows = slice(first, first + CHUNK)
        chosen = others[rows]
        own = keys.index_select(0, candidates[rows, 0])
        products = torch.bmm(_gather(keys, chosen), own.unsqueeze(2)).squeeze(2)
        distance = norms[chosen] - 2.0 * products
        graph[rows] = chosen.gather(1, distance.topk(k, largest=False, sorted=False).indices)
    return graph
