"""Evaluation: noisy clouds with their true surfaces, from a benchmark or made from meshes."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import read
from pointmend.errors import InputError
from pointmend.geometry.meshes import MESH_SUFFIXES, Mesh, read_mesh, unit_sphere
from pointmend.geometry.sample_cache import cached_poisson_disk, default_cache, mesh_digest

from .metrics import distances_to_surface
from .noise import Pattern, add_noise

Float64 = NDArray[np.float64]

# The test sets of the paper, by the names of their folders.
BENCHMARKS = ("PUNet", "PCNet", "MODNet")


@dataclass(frozen=True)
class Case:
    """
    One noisy cloud and its truth.

    Attributes
    ----------
    shape, points, level, pattern : what it is.
    noisy, clean : (N, 3) in the same order.
    mesh : the true surface, in the same frame.
    """

    shape: str
    points: int
    level: float
    pattern: Pattern
    noisy: Float64
    clean: Float64
    mesh: Mesh

    @cached_property
    def digest(self) -> str:
        """A hash of everything a result depends on."""
        content = hashlib.sha256(mesh_digest(self.mesh).encode())
        for cloud in (self.noisy, self.clean):
            content.update(np.ascontiguousarray(cloud).tobytes())
        return content.hexdigest()[:24]

    @cached_property
    def noisy_distances(self) -> Float64:
        """Distances (N,) of the noisy points to the true surface, measured once for all methods."""
        return distances_to_surface(self.noisy, self.mesh)


@dataclass(frozen=True)
class TestSet:
    """
    Shapes with meshes, and where their clouds are kept.

    Attributes
    ----------
    name : what tables call it.
    meshes : mesh file of every shape.
    clean_places, noisy_places : where the benchmark keeps its own clouds, as templates with
        {points} and {level}: an NPZ with one array per shape, or a folder with one file per shape.
    cache : where clouds sampled by us are kept.
    """

    __test__ = False  # for pytest: not a test

    name: str
    meshes: Mapping[str, Path]
    clean_places: tuple[str, ...] = ()
    noisy_places: tuple[str, ...] = ()
    cache: Path = field(default_factory=default_cache)

    @property
    def shapes(self) -> list[str]:
        """Names of the shapes, in order."""
        return sorted(self.meshes)

    def case(self, shape: str, points: int, level: float, pattern: Pattern = "gaussian") -> Case:
        """
        One cloud of the set: the benchmark's own where it has one, else made by us.

        Ours are Poisson-disk samples of the mesh; the noise is seeded by what the case is.
        """
        mesh = read_mesh(self.meshes[shape])
        clean = _kept(self.clean_places, shape, points, level)
        if clean is None:
            clean = self._sample(mesh, points)
        noisy = None
        if pattern == "gaussian":
            noisy = _kept(self.noisy_places, shape, points, level)
        if noisy is None or len(noisy) != len(clean):
            rng = np.random.default_rng(zlib.crc32(f"{shape} {points} {level} {pattern}".encode()))
            noisy = add_noise(clean, pattern, level, rng)
        return Case(shape, points, level, pattern, noisy, clean, mesh)

    def _sample(self, mesh: Mesh, points: int) -> Float64:
        """A Poisson-disk cloud (points, 3) in the frame of the mesh."""
        centre, radius = unit_sphere(mesh.vertices)
        unit = Mesh((mesh.vertices - centre) / radius, mesh.faces)
        return centre + radius * cached_poisson_disk(unit, points, self.cache, mesh_digest(mesh))


def open_benchmark(data: Path, name: str, cache: Path | None = None) -> TestSet:
    """
    A test set of the paper, in the layout it is published in or with its clouds packed.

    Parameters
    ----------
    data : folder that holds NAME/meshes/test and NAME/pointclouds/test/10000_poisson/*.xyz, and the
        benchmark's noisy inputs in examples/NAME_10000_poisson_0.01/*.xyz; or the same under name/
        with clouds/test_10000_poisson.npz and noisy/NAME_10000_poisson_0.01.npz.
    name : one of BENCHMARKS.
    """
    published, packed = data / name, data / name.lower()
    for root in (published, packed):
        meshes = mesh_files(root / "meshes" / "test")
        if meshes:
            return TestSet(
                name,
                meshes,
                (
                    f"{published}/pointclouds/test/{{points}}_poisson",
                    f"{packed}/clouds/test_{{points}}_poisson.npz",
                ),
                (
                    f"{data}/examples/{name}_{{points}}_poisson_{{level}}",
                    f"{packed}/noisy/{name}_{{points}}_poisson_{{level}}.npz",
                ),
                cache or default_cache(),
            )
    raise InputError(f"{data}: no test meshes of {name} in {published} or {packed}")


def open_meshes(folder: Path, cache: Path | None = None) -> TestSet:
    """Any folder of meshes, nested or not, as a test set."""
    meshes = mesh_files(folder)
    if not meshes:
        raise InputError(f"{folder}: no mesh was found; put {' '.join(MESH_SUFFIXES)} files there")
    return TestSet(folder.resolve().name, meshes, cache=cache or default_cache())


def open_test_set(data: Path, name: str | None, cache: Path | None = None) -> TestSet:
    """A benchmark when its name is given, the folder's own meshes otherwise."""
    if not data.is_dir():
        raise InputError(f"{data}: no such folder; name one with meshes")
    return open_benchmark(data, name, cache) if name else open_meshes(data, cache)


def mesh_files(folder: Path) -> dict[str, Path]:
    """All meshes below a folder by their names without suffix; none when there is no folder."""
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in MESH_SUFFIXES)
    return {path.stem: path for path in found if path.is_file()}


def _kept(places: tuple[str, ...], shape: str, points: int, level: float) -> Float64 | None:
    """The cloud (N, 3) the benchmark itself keeps, or None."""
    for place in places:
        path = Path(place.format(points=points, level=f"{level:g}"))
        if path.suffix == ".npz" and path.is_file():
            with np.load(path, allow_pickle=False) as arrays:
                if shape in arrays.files:
                    return np.asarray(arrays[shape], dtype=np.float64)
        elif (file := path / f"{shape}.xyz").is_file():
            return read(file).positions
    return None
