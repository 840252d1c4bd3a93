"""Room `cloud`: nothing a user would miss is lost silently between formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pointmend.cloud.files import format_of, read, write
from pointmend.cloud.left_behind import all_losses
from pointmend.cloud.point_cloud import PointCloud

TARGETS = (".las", ".ply", ".pcd", ".e57", ".xyz", ".npz", ".obj")


def lost(cloud: PointCloud, suffix: str) -> tuple[str, ...]:
    return all_losses(cloud, format_of(Path(f"a{suffix}")))


@pytest.mark.parametrize("suffix", TARGETS)
def test_plain_points_lose_nothing(suffix: str) -> None:
    assert lost(PointCloud(np.eye(3)), suffix) == ()


@pytest.mark.parametrize("suffix", TARGETS)
def test_faces_are_missed_outside_their_own_format(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "a.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    mesh = read(tmp_path / "a.off")
    assert lost(mesh, ".off") == ()
    assert lost(mesh, suffix) == ("faces of the mesh",)


def test_other_elements_of_a_ply(tmp_path: Path) -> None:
    head = "ply\nformat ascii 1.0\nelement vertex 3\n"
    head += "".join(f"property double {axis}\n" for axis in "xyz")
    head += "property list uchar int seen\n"
    head += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    body = "0 0 0 0\n1 0 0 1 4\n0 1 0 0\n3 0 1 2\n"
    (tmp_path / "a.ply").write_text(head + body)
    mesh = read(tmp_path / "a.ply")
    assert lost(mesh, ".ply") == ()
    assert lost(mesh, ".las") == ("1 rows of 'face'", "list 'seen' of the points")


def test_the_coordinate_system_of_a_las(tmp_path: Path) -> None:
    laspy = pytest.importorskip("laspy", reason="laspy writes the file")
    header = laspy.LasHeader(version="1.4", point_format=6)
    wkt = 'PROJCS["UTM 12N",AUTHORITY["EPSG","32612"]]\0'
    header.vlrs.append(laspy.VLR("LASF_Projection", 2112, "WKT", wkt.encode()))
    las = laspy.LasData(header)
    las.x, las.y, las.z = np.eye(3)
    las.write(tmp_path / "a.las")
    cloud = read(tmp_path / "a.las")
    assert lost(cloud, ".laz") == ()
    assert "coordinate system UTM 12N (EPSG:32612)" in lost(cloud, ".ply")


def test_poses_of_an_e57(tmp_path: Path) -> None:
    write(PointCloud(np.eye(3) + np.array([515000.0, 4918000.0, 300.0])), tmp_path / "a.e57")
    cloud = read(tmp_path / "a.e57")
    assert lost(cloud, ".e57") == ()
    assert lost(cloud, ".ply") == ("pose of the scan (it is applied to the points)",)


def test_grid_and_viewpoint_of_a_pcd(tmp_path: Path) -> None:
    text = "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 2\nHEIGHT 2\n"
    text += "VIEWPOINT 1 0 0 1 0 0 0\nPOINTS 4\nDATA ascii\n" + "0 0 1\n" * 4
    (tmp_path / "a.pcd").write_text(text)
    cloud = read(tmp_path / "a.pcd")
    assert lost(cloud, ".pcd") == ()
    assert lost(cloud, ".ply") == ("rows and columns (2 x 2)", "viewpoint")
