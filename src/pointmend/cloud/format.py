"""Room `cloud`: what a file format has to offer to be plugged into `files`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pointmend.cloud.point_cloud import PointCloud


def exact(cloud: PointCloud) -> float:
    """Tell that a format writes every coordinate as it is."""
    return 0.0


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
        not installed with the package is imported inside, so that the registry stays light.
    write : callable
        (cloud, path) -> None. May fail half way: `files.write` hands it a temporary file.
    precision : callable
        How far writing this cloud may move a coordinate; a file that reads back further off than
        that is not put in place.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path], PointCloud]
    write: Callable[[PointCloud, Path], None]
    precision: Callable[[PointCloud], float] = exact
