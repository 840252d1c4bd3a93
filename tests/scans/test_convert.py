from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, read, write
from pointmend.errors import FileFormatError
from pointmend.scans.budget import Budget
from pointmend.scans.convert import convert_file

STREAMED, HELD = Budget(9000, 2500, True, 0), Budget(9000, 10_000, False, 0)


@pytest.mark.parametrize("budget", [HELD, STREAMED])
@pytest.mark.parametrize(
    ("first", "second"), [(".ply", ".laz"), (".laz", ".ply"), (".ply", ".las")]
)
def test_points_and_attributes_arrive(
    tmp_path: Path, cloud: PointCloud, budget: Budget, first: str, second: str
) -> None:
    source, target = tmp_path / f"a{first}", tmp_path / f"b{second}"
    write(cloud, source)
    count, lost = convert_file(source, target, budget)
    assert (count, lost) == (9000, ())
    found = read(target)
    assert np.allclose(found.positions, cloud.positions, rtol=0.0, atol=1e-3)
    for name, values in cloud.attributes.items():
        assert np.array_equal(found.attributes[name], values)


def test_what_is_lost_is_told_or_refused(tmp_path: Path, cloud: PointCloud) -> None:
    source, target = tmp_path / "a.ply", tmp_path / "b.off"
    write(cloud, source)
    with pytest.raises(FileFormatError, match="cannot hold"):
        convert_file(source, target, HELD, strict=True)
    assert not target.exists()
    count, lost = convert_file(source, target, HELD)
    assert count == 9000
    assert len(lost) == 2


def test_streaming_needs_a_format_in_pieces(tmp_path: Path, cloud: PointCloud) -> None:
    source = tmp_path / "a.ply"
    write(cloud, source)
    with pytest.raises(FileFormatError, match=r"b\.npy: NumPy array cannot be written in pieces"):
        convert_file(source, tmp_path / "b.npy", STREAMED)
    assert list(tmp_path.iterdir()) == [source]
