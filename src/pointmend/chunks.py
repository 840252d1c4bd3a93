"""Working through many rows a few at a time, so that what is in between stays in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Rows = slice | Tensor


def chunks(count: int, each: int) -> Iterator[slice]:
    """Cut `count` rows into slices, at least one, of which every thread gets a share of `each`."""
    size = each * torch.get_num_threads()
    return (slice(first, min(first + size, count)) for first in range(0, max(1, count), size))


def in_chunks(compute: Callable[[slice], Tensor], like: Tensor, each: int) -> Tensor:
    """
    What `compute` makes of every row of a table, a few rows at a time.

    While something is learned everything is kept for the way back anyway, and accelerators want
    all work at once: then there is one slice.

    Parameters
    ----------
    compute : given a slice of n rows, returns (n, ...).
    like : (M, ...) a table with these rows, whose device decides.
    each : rows for each thread at a time.

    Returns
    -------
    (M, ...)
    """
    if torch.is_grad_enabled() or like.device.type != "cpu":
        return compute(slice(0, len(like)))
    first, *others = chunks(len(like), each)
    part = compute(first)
    if not others:
        return part
    result = part.new_empty(len(like), *part.shape[1:])
    result[first] = part
    for rows in others:
        result[rows] = compute(rows)
    return result


def pick(chosen: Tensor | None, rows: slice) -> Rows:
    """Some of the chosen rows (U,) of a table; of all its rows when None."""
    return rows if chosen is None else chosen[rows]


def take(table: Tensor, rows: Rows | None) -> Tensor:
    """Some rows (U,) of a table (M, ...), or the table itself when None."""
    if rows is None:
        return table
    return table[rows] if isinstance(rows, slice) else table.index_select(0, rows)
