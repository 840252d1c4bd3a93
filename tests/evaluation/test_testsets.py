from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.cloud.files import write
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import InputError
from pointmend.evaluation.testsets import open_benchmark, open_meshes, open_test_set
from pointmend.geometry.meshes import Mesh, unit_sphere
from pointmend.geometry.procedural import box, torus
from pointmend.geometry.triangles import points_to_mesh

WriteMesh = Callable[[Path, Mesh], None]


def write_xyz(path: Path, points: NDArray[np.floating]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(PointCloud(points.astype(np.float64)), path)


def big(mesh: Mesh) -> Mesh:
    return Mesh(100.0 * mesh.vertices + 1000.0, mesh.faces)


def test_any_folder_of_meshes_is_a_test_set(tmp_path: Path, write_off: WriteMesh) -> None:
    write_off(tmp_path / "a" / "torus.off", big(torus(30, 20)))
    write_off(tmp_path / "b" / "box.off", box(4))
    test_set = open_meshes(tmp_path, tmp_path / "cache")
    assert test_set.shapes == ["box", "torus"]
    case = test_set.case("torus", 500, 0.02, "uniform")
    assert case.clean.shape == case.noisy.shape == (500, 3)
    _, radius = unit_sphere(case.mesh.vertices)
    assert points_to_mesh(case.clean, case.mesh).squared.max() < (1e-5 * radius) ** 2
    moved = np.linalg.norm(case.noisy - case.clean, axis=1)
    _, cloud_radius = unit_sphere(case.clean)
    assert 0.015 * cloud_radius < moved.max() <= 0.02 * cloud_radius * (1 + 1e-9)


def test_the_same_case_is_the_same_and_another_is_not(tmp_path: Path, write_off: WriteMesh) -> None:
    write_off(tmp_path / "torus.off", torus(30, 20))
    test_set = open_meshes(tmp_path, tmp_path / "cache")
    first = test_set.case("torus", 300, 0.01)
    again = test_set.case("torus", 300, 0.01)
    assert np.array_equal(first.noisy, again.noisy)
    assert first.digest == again.digest
    others = [
        test_set.case("torus", 301, 0.01),
        test_set.case("torus", 300, 0.02),
        test_set.case("torus", 300, 0.01, "laplace"),
    ]
    assert len({first.digest, *(case.digest for case in others)}) == 4


@pytest.mark.parametrize("packed", [True, False])
def test_a_benchmark_brings_its_own_clouds(
    tmp_path: Path, write_off: WriteMesh, packed: bool
) -> None:
    rng = np.random.default_rng(0)
    clean = rng.random((50, 3)).astype(np.float32)
    noisy = clean + np.float32(0.01)
    if packed:
        write_off(tmp_path / "punet" / "meshes" / "test" / "box.off", box(4))
        for kind in ("clouds", "noisy"):
            (tmp_path / "punet" / kind).mkdir()
        np.savez(tmp_path / "punet" / "clouds" / "test_50_poisson.npz", box=clean)
        np.savez(tmp_path / "punet" / "noisy" / "PUNet_50_poisson_0.01.npz", box=noisy)
    else:
        write_off(tmp_path / "PUNet" / "meshes" / "test" / "box.off", box(4))
        clouds = tmp_path / "PUNet" / "pointclouds" / "test" / "50_poisson"
        write_xyz(clouds / "box.xyz", clean)
        write_xyz(tmp_path / "examples" / "PUNet_50_poisson_0.01" / "box.xyz", noisy)
    test_set = open_test_set(tmp_path, "PUNet", tmp_path / "cache")
    case = test_set.case("box", 50, 0.01)
    assert np.allclose(case.clean, clean, atol=1e-6)
    assert np.allclose(case.noisy, noisy, atol=1e-6)
    # A level or pattern it does not bring is drawn on its own clean cloud.
    drawn = test_set.case("box", 50, 0.02)
    assert np.allclose(drawn.clean, clean, atol=1e-6)
    assert not np.allclose(drawn.noisy, noisy, atol=1e-3)
    other = test_set.case("box", 50, 0.01, "laplace")
    assert not np.allclose(other.noisy, noisy, atol=1e-3)
    # Points it does not bring are sampled.
    assert len(test_set.case("box", 60, 0.01).clean) == 60


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no test meshes of PCNet"):
        open_benchmark(tmp_path, "PCNet")
    with pytest.raises(InputError, match="no mesh"):
        open_test_set(tmp_path, None)
    with pytest.raises(InputError, match="no such folder"):
        open_test_set(tmp_path / "absent", None)
