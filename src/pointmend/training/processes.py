"""Training: the same work on many items, by several processes at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# What a process was started for.
_work: list[Callable[[Any], Any]] = []


def in_processes(
    work: Callable[[Item], Answer], items: Sequence[Item], processes: int
) -> Iterator[Answer]:
    """
    What `work` makes of every item, in their order.

    Parameters
    ----------
    work : what other processes can be handed: a function of a module, or a `partial` of one.
    processes : how many at once, one thread each; 1 works here, without starting any.
    """
    if processes == 1:
        yield from map(work, items)
        return
    # A process that was forked off a running torch may wait for threads it does not have.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, fresh, initializer=_begin, initargs=(work,)) as pool:
        yield from pool.map(_do, items)


def _begin(work: Callable[[Any], Any]) -> None:
    """Take up the work."""
    torch.set_num_threads(1)
    _work.append(work)


def _do(item: Any) -> Any:
    """Do it to one item."""
    return _work[0](item)
