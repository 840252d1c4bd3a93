from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, read, write
from pointmend.errors import InputError
from pointmend.scans.marks import Marks, check_marks, marked

OUTLIER = np.array([False, True, False])
WAY = np.array([0.1, 0.0, 0.3])


def cloud() -> PointCloud:
    return PointCloud(np.eye(3), {"a": np.arange(3)})


def test_nothing_is_added_unless_asked_for() -> None:
    same = marked(cloud(), WAY, OUTLIER, Marks())
    assert list(same.attributes) == ["a"]
    assert len(same) == 3


def test_displacement_and_outliers_are_attributes() -> None:
    result = marked(cloud(), WAY, OUTLIER, Marks(displacement=True, outliers=True))
    assert result.attributes["displacement"].dtype == np.float32
    assert np.allclose(result.attributes["displacement"], WAY)
    assert result.attributes["outlier"].tolist() == OUTLIER.tolist()
    assert result.attributes["a"].tolist() == [0, 1, 2]


def test_dropped_points_take_their_attributes_along() -> None:
    result = marked(cloud(), WAY, OUTLIER, Marks(drop_outliers=True, outliers=True))
    assert result.attributes["a"].tolist() == [0, 2]
    assert list(result.attributes) == ["a"]
    nobody = np.zeros(3, dtype=bool)
    assert len(marked(cloud(), WAY, nobody, Marks(drop_outliers=True, outliers=True))) == 3


def test_las_points_get_the_class_of_noise(tmp_path: Path) -> None:
    path = tmp_path / "a.las"
    write(PointCloud(np.eye(3), {"classification": np.array([2, 3, 4], dtype=np.uint8)}), path)
    result = marked(read(path), WAY, OUTLIER, Marks(outliers=True))
    assert result.attributes["classification"].tolist() == [2, 7, 4]
    assert "outlier" not in result.attributes
    write(result, path)
    assert read(path).attributes["classification"].tolist() == [2, 7, 4]
    check_marks(result.with_attribute("outlier", OUTLIER), Marks(outliers=True), path)


@pytest.mark.parametrize("name", ["displacement", "outlier"])
def test_what_is_there_is_not_replaced(name: str) -> None:
    taken = cloud().with_attribute(name, WAY)
    with pytest.raises(InputError, match=f"scan.ply already has an attribute '{name}'"):
        check_marks(taken, Marks(displacement=True, outliers=True), Path("scan.ply"))
    check_marks(taken, Marks(), Path("scan.ply"))
