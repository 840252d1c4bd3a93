"""Network: what the features of some points depend on, the rows a local E has to compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Reach:
    """
    The rows of every layer, input first.

    Attributes
    ----------
    inputs : (U_0,) rows of the cloud the first layer needs; all when None.
    candidates : one (U_l, K) table per layer l = 1 ... L: for each row of the layer, where its
        candidates are among the rows of the layer before, itself first.
    """

    inputs: Tensor | None
    candidates: Sequence[Tensor]


def reach_of(candidates: Tensor, wanted: Tensor | None, layers: int) -> Reach:
    """
    Go back from the wanted rows to all they depend on.

    Parameters
    ----------
    candidates : (M, K) rows each point's neighbours are chosen among, itself first.
    wanted : (U,) rows; all when None.
    layers : how many times neighbours are looked at.
    """
    if wanted is None:
        return Reach(None, [candidates] * layers)
    tables = []
    rows = wanted
    for _ in range(layers):
        seen = candidates.index_select(0, rows)
        rows, place = touched(seen, len(candidates))
        tables.append(place[seen])
    return Reach(rows, tables[::-1])


def touched(index: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """
    Which of `count` rows an index names.

    Returns
    -------
    rows : (U,) ascending, each once. By marking, which is many times faster than sorting.
    place : (count,) where each of them is in `rows`; the others mean nothing.
    """
    marked = torch.zeros(count, dtype=torch.bool, device=index.device)
    marked[index.reshape(-1)] = True
    rows = marked.nonzero().squeeze(1)
    place = torch.cumsum(marked, dim=0) - 1
    return rows, place
