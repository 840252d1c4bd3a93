"""Convolutions over the edges of a neighbour graph, without ever storing the edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

# Rows handled at once: the working set of 1000 rows x 64 channels stays in the L2 cache.
CHUNK = 1024

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
    if torch.compiler.is_compiling() or table.device.type != "cpu":
        return table[index].amax(dim=1)
    result: Tensor = _NeighbourMax.apply(table, index)  # type: ignore[no-untyped-call]
    return result


class _NeighbourMax(torch.autograd.Function):
    """Running maximum column by column; the backward pass finds the winners again."""

    @staticmethod
    def forward(ctx: FunctionCtx, table: Tensor, index: Tensor) -> Tensor:
        best = torch.empty(len(index), table.shape[1], dtype=table.dtype)
        for first in range(0, len(index), CHUNK):
            columns = index[first : first + CHUNK].t().contiguous()
            chunk = best[first : first + CHUNK]
            torch.index_select(table, 0, columns[0], out=chunk)
            for column in columns[1:]:
                torch.maximum(chunk, table.index_select(0, column), out=chunk)
        ctx.save_for_backward(table, index, best)
        return best

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        table, index, best = ctx.saved_tensors  # type: ignore[attr-defined]
        result = torch.zeros_like(table)
        for first in range(0, len(index), CHUNK):
            rows = slice(first, first + CHUNK)
            # What a winner takes is gone, so that equal neighbours do not count twice.
            left, winner = gradient[rows].clone(), best[rows]
            for column in index[rows].t().contiguous():
                share = left * (table.index_select(0, column) == winner)
                left -= share
                result.index_add_(0, column, share)
        return result, None


class EdgeConvolution(nn.Module):
    """
    One-layer edge convolution of DGCNN: max_j (A x_i + B (x_j - x_i)).

    The maximum runs over j only, so it equals A x_i - B x_i + max_j B x_j: the products are made
    per point, not per edge.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.centre = nn.Linear(inputs, outputs)
        self.edge = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        """
        Convolve.

        Parameters
        ----------
        x : (M, inputs).
        index : (M, k) neighbour rows.

        Returns
        -------
        (M, outputs)
        """
        edge = self.edge(x)
        result: Tensor = self.centre(x) - edge + neighbour_max(edge, index)
        return result


@torch.no_grad()
def feature_graph(x: Tensor, k: int, patch_points: int, candidates: Tensor | None = None) -> Tensor:
    """
    The dynamic graph: each point's k nearest in feature space, itself left out.

    Parameters
    ----------
    x : (M, C) features.
    k : neighbours wanted.
    patch_points : points of each patch; patches do not see each other.
    candidates : (M, K) rows to choose among, itself first; the whole patch when None.

    Returns
    -------
    (M, k) rows.
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
    graph = torch.empty(len(x), k, dtype=torch.int64, device=x.device)
    for first in range(0, len(x), CHUNK // 4):
        rows = slice(first, first + CHUNK // 4)
        chosen = others[rows]
        gathered = keys.index_select(0, chosen.reshape(-1)).reshape(*chosen.shape, keys.shape[1])
        products = torch.bmm(gathered, keys[rows].unsqueeze(2)).squeeze(2)
        distance = norms[chosen] - 2.0 * products
        graph[rows] = chosen.gather(1, distance.topk(k, largest=False, sorted=False).indices)
    return graph
