"""Geometry: nearest neighbours in space."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


def nearest(points: Float64, queries: Float64, k: int) -> Int64:
    """
    The k nearest points of each query, nearest first.

    Parameters
    ----------
    points : (N, 3) with N >= 1.
    queries : (Q, 3).
    k : neighbours wanted; when there are fewer points than that, the last is repeated.

    Returns
    -------
    (Q, k) indices into points.
    """
    available = min(k, len(points))
    threads = torch.get_num_threads()
    _, index = cKDTree(points).query(queries, k=available, workers=threads)
    index = np.asarray(index, dtype=np.int64).reshape(len(queries), available)
    return pad_by_last(index, k)


def pad_by_last(index: Int64, k: int) -> Int64:
    """Repeat the last column until there are k: (Q, j) -> (Q, k)."""
    missing = k - index.shape[1]
    return np.pad(index, ((0, 0), (0, missing)), mode="edge") if missing > 0 else index


def neighbour_table(positions: Tensor, patch_points: int, k: int) -> Tensor:
    """
    Each point's k nearest points of its own patch, itself first.

    Parameters
    ----------
    positions : (M, 3) the points of M / patch_points patches, one patch after the other.
    patch_points : points of each patch.
    k : neighbours wanted, with repetition when a patch has fewer points.

    Returns
    -------
    (M, k) int64 rows of positions.

    Notes
    -----
    A KD-tree per patch on the CPU (3 to 100 times faster than all distances), all distances
    elsewhere, where a tree would cost a round trip to the host.
    """
    patches = positions.reshape(-1, patch_points, 3)
    if positions.device.type != "cpu":
        return _neighbour_table_dense(patches, k)
    tables = []
    for number, patch in enumerate(patches.numpy()):
        index = nearest(patch, patch, k)
        _put_itself_first(index)
        tables.append(index + number * patch_points)
    return torch.from_numpy(np.concatenate(tables))


def _put_itself_first(index: Int64) -> None:
    """Among coinciding points the tree names any first; swap the point itself into column 0."""
    rows = np.flatnonzero(index[:, 0] != np.arange(len(index)))
    itself = index[rows] == rows[:, None]
    # Where more points coincide than neighbours are kept, the point itself may be missing: then
    # the last one makes room.
    column = np.where(itself.any(axis=1), itself.argmax(axis=1), index.shape[1] - 1)
    index[rows, column] = index[rows, 0]
    index[rows, 0] = rows


def _neighbour_table_dense(patches: Tensor, k: int) -> Tensor:
    """The same from all pairwise distances, on any device: (B, N, 3) -> (B N, k)."""
    count, points, _ = patches.shape
    distance = torch.cdist(patches, patches)
    distance.diagonal(dim1=1, dim2=2).fill_(-1.0)
    index = distance.topk(min(k, points), largest=False).indices
    if k > points:
        index = torch.cat([index, index[..., -1:].expand(-1, -1, k - points)], dim=-1)
    first_row = torch.arange(count, device=patches.device)[:, None, None] * points
    return (index + first_row).reshape(count * points, k)


def typical_spacing(points: Float64, sample: int = 10_000) -> float:
    """
    Median distance to the nearest other point, over at most `sample` points (evenly picked).

    The median, because a few far outliers or a dense corner must not decide the scale.

    Parameters
    ----------
    points : (N, 3) finite points. Fewer than two, or all in one place, have spacing 0.
    """
    if len(points) < 2:
        return 0.0
    queries = points[:: max(1, len(points) // sample)]
    distance, _ = cKDTree(points).query(queries, k=2)
    return float(np.median(distance[:, 1]))
