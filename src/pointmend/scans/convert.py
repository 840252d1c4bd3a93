"""Room `scans`: from one file format to another, and what gets lost on the way."""

from __future__ import annotations

from pathlib import Path

from pointmend.cloud.files import check_written, format_of, open_pieces, put_in_place, read, write
from pointmend.cloud.format import Format
from pointmend.cloud.left_behind import all_losses
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError, NotInPieces

from .budget import Budget
from .pipeline import PIECE_ROWS, Extent


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
        raise NotInPieces(
            f"{target}: {chosen.name} cannot be written in pieces, and the cloud does not fit into "
            "memory; choose LAS, LAZ or PLY, or allow more (--max-memory)"
        )
    with open_pieces(source) as reader, put_in_place(target) as part:
        template = next(reader.pieces(PIECE_ROWS))
        lost = _losses(chosen, template, strict)
        wanted, got = Extent(), Extent()
        with chosen.pieces.create(template, reader.count, part) as writer:
            for piece in reader.pieces(PIECE_ROWS):
                wanted.add(piece)
                writer.append(piece)
        with chosen.pieces.open(part) as written:
            for piece in written.pieces(PIECE_ROWS):
                got.add(piece)
                template = piece  # which knows how finely the file holds coordinates
        check_written(wanted.values(), got.values(), chosen, template)
        return reader.count, lost


def _losses(chosen: Format, cloud: PointCloud, strict: bool) -> tuple[str, ...]:
    lost = all_losses(cloud, chosen)
    if lost and strict:
        raise FileFormatError(f"{chosen.name} cannot hold {', '.join(lost)}")
    return lost
