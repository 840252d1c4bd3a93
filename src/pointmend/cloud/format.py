"""Room `cloud`: what a file format has to offer to be plugged into `files`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pointmend.cloud.point_cloud import PointCloud


def exact(cloud: PointCloud) -> float:
    """Tell that a format writes every coordinate as it is."""
    return 0.0


def nothing_lost(cloud: PointCloud) -> tuple[str, ...]:
    """Tell that a format holds all that a cloud has."""
    return ()


class PieceReader(Protocol):
    """An open file whose points come in pieces, so that it may be larger than memory."""

    @property
    def count(self) -> int:
        """Points of the whole file."""

    def pieces(self, rows: int) -> Iterator[PointCloud]:
        """
        Yield the points in file order, `rows` at a time, with all attributes; can be called again.

        What belongs to the whole file (header, CRS) is in the metadata of every piece.
        """


class PieceWriter(Protocol):
    """A file under construction."""

    def append(self, piece: PointCloud) -> None:
        """Add points with the attributes the template had."""


@dataclass(frozen=True)
class Pieces:
    """
    How a format is read and written without ever holding a whole file.

    Parameters
    ----------
    open : callable
        Path -> context manager of a `PieceReader`. Raises `FileFormatError` as `Format.read` does,
        and `NotInPieces` for a file that only `Format.read` can read.
    create : callable
        (template, count, path) -> context manager of a `PieceWriter`. The template is a piece of
        the cloud to be written (any number of points) with its attributes and metadata; `count`
        points will be appended in all. Leaving the context normally completes the file.
    """

    open: Callable[[Path], AbstractContextManager[PieceReader]]
    create: Callable[[PointCloud, int, Path], AbstractContextManager[PieceWriter]]


@dataclass(frozen=True)
class Format:
    """
    One file format.

    Parameters
    ----------
    name : str
        As a user would call it.
    suffixes : tuple of str
        Lower case, with the dot.
    read : callable
        Path -> cloud. Raises `FileFormatError` without naming the path (`files.read` adds it), and
        compares declared counts with the size of the file before it allocates. A library that is
        slow to import is imported inside, so that the registry stays light.
    write : callable
        (cloud, path) -> None. May fail half way: `files.write` hands it a temporary file.
    precision : callable
        How far writing this cloud may move a coordinate; a file that reads back further off than
        that is not put in place.
    losses : callable
        What of this cloud the format cannot hold, a few words each ("attribute 'label'", "CRS").
        `write` leaves exactly that out; what it could only change silently it refuses.
    pieces : Pieces or None
        For formats that can be streamed.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path], PointCloud]
    write: Callable[[PointCloud, Path], None]
    precision: Callable[[PointCloud], float] = exact
    losses: Callable[[PointCloud], tuple[str, ...]] = nothing_lost
    pieces: Pieces | None = None
