"""Room `cloud`: LAS and LAZ files in pieces give what they give as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pointmend.cloud import las
from pointmend.cloud.files import read, write
from pointmend.cloud.las_layout import LasLayout
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

if TYPE_CHECKING:
    from tests.cloud.conftest import LasMaker


def layout_of(cloud: PointCloud) -> LasLayout:
    layout = cloud.metadata["las"]
    assert isinstance(layout, LasLayout)
    return layout


def same_bits(a: Any, b: Any) -> bool:
    return bool(a.dtype.itemsize == b.dtype.itemsize and a.tobytes() == b.tobytes())


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_pieces_are_the_whole(tmp_path: Path, las_maker: LasMaker, suffix: str, rows: int) -> None:
    source = tmp_path / f"in{suffix}"
    las_maker.file(source, 7, extras=las_maker.extras)
    whole = read(source)
    pieces = las.FORMAT.pieces
    assert pieces is not None
    with pieces.open(source) as reader:
        assert reader.count == 50
        found = list(reader.pieces(rows))
        first = next(iter(reader.pieces(rows)))  # a second pass
        with pieces.create(first, reader.count, tmp_path / f"piecewise{suffix}") as writer:
            for piece in reader.pieces(rows):
                writer.append(piece)
    assert [len(piece) for piece in found[:-1]] == [rows] * (len(found) - 1)
    assert np.array_equal(np.concatenate([p.positions for p in found]), whole.positions)
    for name, values in whole.attributes.items():
        assert same_bits(np.concatenate([p.attributes[name] for p in found]), values)
    assert all(layout_of(piece) == layout_of(whole) for piece in found)
    write(whole, tmp_path / f"whole{suffix}")
    assert (tmp_path / f"piecewise{suffix}").read_bytes() == (
        tmp_path / f"whole{suffix}"
    ).read_bytes()


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_a_file_without_points_has_one_piece(
    tmp_path: Path, las_maker: LasMaker, suffix: str
) -> None:
    las_maker.file(tmp_path / f"a{suffix}", 7, count=0)
    with las.open_(tmp_path / f"a{suffix}") as reader:
        (piece,) = reader.pieces(10)
    assert len(piece) == 0
    with las.create(piece, 0, tmp_path / f"b{suffix}") as writer:
        writer.append(piece)
    assert len(read(tmp_path / f"b{suffix}")) == 0


def test_two_passes_side_by_side(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.laz", 6)
    with las.open_(tmp_path / "a.laz") as reader:
        for one, other in zip(reader.pieces(7), reader.pieces(7)):
            assert np.array_equal(one.positions, other.positions)


def test_pieces_must_add_up(tmp_path: Path, las_maker: LasMaker) -> None:
    las_maker.file(tmp_path / "a.las", 6)
    cloud = read(tmp_path / "a.las")
    with (
        pytest.raises(FileFormatError, match="49 points were written instead of 50"),
        las.create(cloud[:0], 50, tmp_path / "b.las") as writer,
    ):
        writer.append(cloud[1:])
    bare = PointCloud(cloud.positions, {"user_data": cloud.attributes["user_data"]}, cloud.metadata)
    with (
        pytest.raises(FileFormatError, match="'intensity' is missing"),
        las.create(cloud[:0], 50, tmp_path / "b.las") as writer,
    ):
        writer.append(bare)
