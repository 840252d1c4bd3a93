"""Room `scans`: from one file format to another, and what gets lost on the way."""

from __future__ import annotations

from pathlib import Path

from pointmend.cloud.files import (
    PIECE_ROWS,
    format_of,
    open_pieces,
    put_in_place,
    read,
    why_not_in_pieces,
    write,
    write_pieces,
)
from pointmend.cloud.format import Format
from pointmend.cloud.left_behind import all_losses
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError, NotInPieces

from .budget import Budget


def convert_file(
    source: Path, target: Path, budget: Budget, strict: bool = False
) -> tuple[int, tuple[str, ...]]:
    """
    Write a file in another format.

    Parameters
    ----------
    strict : refuse to lose anything.

    Returns
    -------
    points : how many there are.
    lost : what the new format cannot hold, a few words each.
    """
    chosen = format_of(target)
    if not budget.streamed:
        cloud = read(source)
        lost = _losses(chosen, cloud, strict)
        write(cloud, target)
        return len(cloud), lost
    if chosen.pieces is None:
        raise NotInPieces(why_not_in_pieces(target))
    with open_pieces(source) as reader, put_in_place(target) as part:
        lost = _losses(chosen, next(reader.pieces(1)), strict)
        write_pieces(chosen.pieces, chosen, reader.count, reader.pieces(PIECE_ROWS), part)
        return reader.count, lost


def _losses(chosen: Format, cloud: PointCloud, strict: bool) -> tuple[str, ...]:
    lost = all_losses(cloud, chosen)
    if lost and strict:
        raise FileFormatError(f"{chosen.name} cannot hold {', '.join(lost)}")
    return lost
