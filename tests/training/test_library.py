import tarfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.errors import InputError
from pointmend.geometry import sample_cache
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.procedural import box, torus
from pointmend.training.library import Source, build_shape, open_library, with_made_shapes
from pointmend.training.shapes import SampledSurface


def write_off(mesh: Mesh, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"OFF\n{len(mesh.vertices)} {len(mesh.faces)} 0"]
    lines += [" ".join(f"{value:.17g}" for value in vertex) for vertex in mesh.vertices]
    lines += ["3 " + " ".join(map(str, face)) for face in mesh.faces]
    path.write_text("\n".join(lines) + "\n")


def sphere(count: int) -> NDArray[np.float64]:
    x = np.random.default_rng(count).standard_normal((count, 3))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shapes in every layout we promise to read."""
    data = tmp_path / "data"
    write_off(torus(), data / "meshes" / "deep" / "torus.off")
    write_off(box(), data / "val" / "box.off")
    write_off(box(), data / "test" / "secret.off")
    write_off(box(), tmp_path / "packed.off")
    with tarfile.open(data / "more.tar.xz", "w:xz") as archive:
        archive.add(tmp_path / "packed.off", "packed.off")
    for count in (1000, 2000):
        rows = data / "pointclouds" / "train" / f"{count}_poisson" / "ball.xyz"
        rows.parent.mkdir(parents=True)
        np.savetxt(rows, 3.0 * sphere(count) + 5.0)
    np.savez(data / "train_1500_poisson.npz", egg=sphere(1500))
    np.savez(data / "test_1500_poisson.npz", held_back=sphere(1500))
    (data / "broken.off").write_text("OFF\n3 1 0\n0 0 0\n")
    np.save(data / "tiny.npy", sphere(10))
    return data


def test_every_layout_is_read_and_what_is_broken_is_named(folder: Path) -> None:
    warnings: list[str] = []
    found = open_library(folder, warnings.append)
    assert [s.name for s in found.training] == ["ball", "egg", "packed", "torus"]
    assert [s.name for s in found.validation] == ["box"]
    ball = found.training[0]
    assert sorted(len(cloud) for cloud in ball.clouds) == [1000, 2000]
    assert len(warnings) == 2
    assert any("broken.off" in line for line in warnings)
    assert any("tiny.npy" in line for line in warnings)


def test_the_hash_follows_the_geometry(folder: Path) -> None:
    first = open_library(folder, lambda line: None).digest
    assert open_library(folder, lambda line: None).digest == first
    write_off(box(), folder / "meshes" / "deep" / "torus.off")
    assert open_library(folder, lambda line: None).digest != first


def test_made_shapes_can_be_added(folder: Path) -> None:
    library = open_library(folder, lambda line: None)
    counts = {"thin": 2, "relief": 1, "limbs": 1, "shells": 1}
    more = with_made_shapes(library, **counts)
    assert more.training[: len(library.training)] == library.training
    added = more.training[len(library.training) :]
    assert [source.name for source in added] == [
        "thin-000",
        "thin-001",
        "shell-000",
        "limbs-000",
        "solid-000",
        "solid-001",
        "relief-000",
    ]
    assert len({source.digest for source in added}) == 7
    assert all(0.01 < source.most_noise < 0.1 for source in added[:4])
    assert [source.most_noise for source in added[4:]] == [np.inf] * 3
    # Walls are also shown with points farther apart than they are thick.
    fewest = [min(source.resolutions) for source in added]
    assert fewest == [5_000, 5_000, 5_000, 10_000, 10_000, 10_000, 10_000]
    assert more.digest == with_made_shapes(library, **counts).digest != library.digest
    assert more.validation == library.validation


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no mesh or clean cloud"):
        open_library(tmp_path, lambda line: None)
    with pytest.raises(InputError, match="no such folder"):
        open_library(tmp_path / "absent", lambda line: None)


def test_meshes_become_even_clouds_in_the_unit_sphere_and_are_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = Mesh(100.0 * torus().vertices + 7.0, torus().faces)
    shape = build_shape(Source("torus", big), tmp_path, (1000, 1500))
    assert [len(cloud) for cloud in shape.clouds] == [1000, 1500]
    assert max(np.linalg.norm(cloud, axis=1).max() for cloud in shape.clouds) <= 1.0 + 1e-6
    # Points of the cloud lie on the surface sample's planes.
    way, _ = shape.surface.way_from(shape.clouds[0])
    assert np.abs(way).max() < 5e-3

    def never(*arguments: object) -> None:
        raise AssertionError("sampled again")

    monkeypatch.setattr(sample_cache, "poisson_disk", never)
    again = build_shape(Source("torus", big), tmp_path, (1000, 1500))
    assert np.allclose(again.clouds[0], shape.clouds[0], atol=1e-6)
    with pytest.raises(AssertionError, match="sampled again"):
        build_shape(Source("box", box()), tmp_path, (1000,))


def test_clouds_that_come_with_a_mesh_are_used_in_its_frame(tmp_path: Path) -> None:
    mesh = torus()
    cloud = 10.0 * mesh.vertices[:2000] + 3.0
    source = Source("torus", Mesh(10.0 * mesh.vertices + 3.0, mesh.faces), [cloud])
    shape = build_shape(source, tmp_path)
    way, _ = shape.surface.way_from(shape.clouds[0])
    assert np.abs(way).max() < 5e-3


def test_clouds_alone_are_their_own_surface(tmp_path: Path) -> None:
    source = Source("ball", None, [5.0 * sphere(1500) + 2.0, 5.0 * sphere(6000) + 2.0])
    shape = build_shape(source, tmp_path)
    assert isinstance(shape.surface, SampledSurface)
    normals, points = shape.surface.normals, shape.surface.points
    outward = np.abs(np.sum(normals * points, axis=1)) / np.linalg.norm(points, axis=1)
    assert np.median(outward) > 0.99
    assert len(points) == 6000
