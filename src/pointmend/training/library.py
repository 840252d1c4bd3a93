"""Training: folders of meshes and clean clouds, as shapes to train on and shapes to validate on."""

from __future__ import annotations

import hashlib
import math
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import known_suffixes, read
from pointmend.errors import InputError, PointmendError
from pointmend.geometry.limbs import limb_shape
from pointmend.geometry.meshes import (
    MESH_SUFFIXES,
    Mesh,
    read_mesh,
    unit_sphere,
)
from pointmend.geometry.neighbours import nearest
from pointmend.geometry.relief import relief_shape
from pointmend.geometry.sample_cache import cached_poisson_disk
from pointmend.geometry.shells import shell_shape
from pointmend.geometry.thin import solid_shape, thin_shape

from .shapes import MeshSurface, SampledSurface, Shape

Float64 = NDArray[np.float64]
Warn = Callable[[str], None]

# Resolutions a mesh is sampled at: those of the benchmark's training clouds.
RESOLUTIONS = (10_000, 30_000, 50_000)
# Thin walls are hard where points lie farther apart than the wall is thick.
THIN_RESOLUTIONS = (5_000, 10_000, 30_000)
SURFACE_POINTS = 300_000
NORMAL_NEIGHBOURS = 16
ARCHIVE_SUFFIXES = (".tar", ".tar.xz", ".tar.gz")

# Parts of a path that mark what must never be trained on, and what validates.
HELD_BACK = {"test", "noisy", "real", "peers"}
VALIDATION = {"val", "validation"}

# Shapes of the benchmark's extra meshes that validate: thin, flat and detailed ones among them.
VALIDATION_NAMES = {
    "cgal_pinion",
    "libigl_fertility",
    "odedstein_goathead",
    "odedstein_koala_low_resolution",
    "odedstein_plane",
    "odedstein_scorpion",
    "trimesh_ADIS16480",
    "trimesh_plate_holes",
    "abc_00994122_57d9d4755722f9d",
}


@dataclass
class Source:
    """
    What was found about one shape: a mesh, clean clouds, or both, in one frame.

    Attributes
    ----------
    name : file name without suffix; files of one name are one shape.
    mesh : the mesh, when there is one.
    clouds : (N_i, 3) clean clouds.
    most_noise : what `Shape` says.
    resolutions : how many points the mesh is sampled with, when there are no clouds.
    """

    name: str
    mesh: Mesh | None = None
    clouds: list[Float64] = field(default_factory=list)
    most_noise: float = math.inf
    resolutions: Sequence[int] = RESOLUTIONS

    @property
    def digest(self) -> str:
        """A hash of the geometry itself, so that a cache never outlives a changed file."""
        content = hashlib.sha256()
        if self.mesh is not None:
            content.update(self.mesh.vertices.tobytes())
            content.update(self.mesh.faces.tobytes())
        for cloud in self.clouds:
            content.update(cloud.tobytes())
        return content.hexdigest()[:24]


@dataclass(frozen=True)
class Library:
    """The shapes of a folder: sources to train on, sources to validate on, and their hash."""

    training: list[Source]
    validation: list[Source]

    @property
    def digest(self) -> str:
        """One hash for all training shapes, to be kept in checkpoints."""
        names = sorted(source.name + source.digest for source in self.training)
        return hashlib.sha256("".join(names).encode()).hexdigest()[:24]


def open_library(folder: Path, warn: Warn) -> Library:
    """
    Read every shape below a folder.

    Meshes (OFF, OBJ, PLY, STL), clean clouds (PLY without faces, XYZ, NPY, NPZ) and tar archives
    of them, nested or not. An NPZ holds one cloud per shape name. Whatever lies in a folder named
    test, noisy, real or peers (or in an NPZ whose name begins so) is left alone; val or
    validation validates.

    Parameters
    ----------
    warn : called with one line for every file that cannot be used; it is skipped.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name one with meshes or clean clouds")
    sources: dict[tuple[str, bool], Source] = {}
    for path, place in _walk(folder):
        words = set(place.parent.parts)
        if path.suffix == ".npz":
            words.add(path.name.split("_")[0])
        if words & HELD_BACK:
            continue
        try:
            for name, found in _read_shapes(path):
                validates = bool(words & VALIDATION) or name in VALIDATION_NAMES
                source = sources.setdefault((name, validates), Source(name))
                if isinstance(found, Mesh):
                    source.mesh = found
                else:
                    source.clouds.append(found)
        except PointmendError as error:
            warn(f"skipped {place}: {error}")
    ordered = [(key, sources[key]) for key in sorted(sources)]
    library = Library(
        training=[source for (_, validates), source in ordered if not validates],
        validation=[source for (_, validates), source in ordered if validates],
    )
    if not library.training:
        raise InputError(
            f"{folder}: no mesh or clean cloud to train on was found; "
            f"put {' '.join(MESH_SUFFIXES)} files there"
        )
    return library


def with_made_shapes(
    library: Library, *, thin: int = 0, relief: int = 0, limbs: int = 0, shells: int = 0
) -> Library:
    """
    The library with shapes made here, always the same ones.

    Parameters
    ----------
    thin : how many thin-walled shapes, and how many solid ones.
    relief : how many bodies with fine relief.
    limbs : how many bodies with limbs, and frames of bars.
    shells : how many parts as they are cast, with walls, ribs and bosses.
    """
    made: list[Source] = []
    for kind, count, make, resolutions in (
        ("thin", thin, thin_shape, THIN_RESOLUTIONS),
        ("shell", shells, shell_shape, THIN_RESOLUTIONS),
        ("limbs", limbs, limb_shape, RESOLUTIONS),
    ):
        for number in range(count):
            walls = make(np.random.default_rng(number))
            # Two sides nearer than that look like one in wider noise: who is taught to see them
            # without being told the noise sees two in all wide noise.
            most_noise = 0.5 * walls.thinnest
            name = f"{kind}-{number:03}"
            made.append(Source(name, walls.mesh, [], most_noise, resolutions))
    for kind, count, body in (("solid", thin, solid_shape), ("relief", relief, relief_shape)):
        made.extend(
            Source(f"{kind}-{number:03}", body(np.random.default_rng(number)))
            for number in range(count)
        )
    return replace(library, training=[*library.training, *made])


def _walk(folder: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    """All files below a folder and inside its archives, with their places, in a fixed order."""
    for path in sorted(folder.rglob("*")):
        place = PurePosixPath(path.relative_to(folder))
        if path.is_file() and path.name.endswith(ARCHIVE_SUFFIXES):
            with tempfile.TemporaryDirectory() as unpacked, tarfile.open(path) as archive:
                archive.extractall(unpacked, filter="data")
                for inner, inner_place in _walk(Path(unpacked)):
                    yield inner, place.parent / inner_place
        elif path.is_file() and path.suffix.lower() in (*MESH_SUFFIXES, *known_suffixes()):
            yield path, place


def _read_shapes(path: Path) -> Iterable[tuple[str, Mesh | Float64]]:
    """The named shapes of one file."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            shaped = {n: arrays[n] for n in arrays.files if arrays[n].shape[1:] == (3,)}
        return [(name, _checked(array)) for name, array in shaped.items()]
    if suffix in MESH_SUFFIXES and not (suffix == ".ply" and _has_no_faces(path)):
        return [(path.stem, read_mesh(path))]
    return [(path.stem, _checked(read(path).positions))]


def _has_no_faces(path: Path) -> bool:
    """Whether a PLY is a cloud: its header names no face element."""
    with path.open("rb") as file:
        header = file.read(4096).split(b"end_header")[0]
    return b"element face" not in header or b"element face 0" in header


def _checked(cloud: NDArray[np.floating]) -> Float64:
    """A clean cloud (N, 3) that patches can be cut from."""
    if len(cloud) < 1000 or not np.isfinite(cloud).all():
        raise InputError(f"a clean cloud needs 1000 finite points, this one has {len(cloud)}")
    return np.asarray(cloud, dtype=np.float64)


def build_shape(source: Source, cache: Path, resolutions: Iterable[int] | None = None) -> Shape:
    """
    Make a source ready for training: unit sphere, clouds of several resolutions, a surface.

    Poisson-disk clouds of a mesh are cached, named by the hash of the mesh.
    """
    rng = np.random.default_rng(int(source.digest[:12], 16))
    if source.mesh is None:
        return _shape_of_clouds(source)
    centre, radius = unit_sphere(source.mesh.vertices)
    mesh = Mesh((source.mesh.vertices - centre) / radius, source.mesh.faces)
    clouds = [(cloud - centre) / radius for cloud in source.clouds]
    if not clouds:
        counts = source.resolutions if resolutions is None else resolutions
        clouds = [cached_poisson_disk(mesh, count, cache, source.digest) for count in counts]
    surface = MeshSurface.of(mesh, SURFACE_POINTS, rng)
    return Shape(source.name, clouds, surface, source.most_noise)


def _shape_of_clouds(source: Source) -> Shape:
    """A shape known by clean clouds alone: its densest one, with local planes, is the surface."""
    densest = max(source.clouds, key=len)
    centre, radius = unit_sphere(densest)
    clouds = [(cloud - centre) / radius for cloud in source.clouds]
    surface = (densest - centre) / radius
    around = surface[nearest(surface, surface, NORMAL_NEIGHBOURS)]
    centred = around - around.mean(axis=1, keepdims=True)
    _, axes = np.linalg.eigh(np.einsum("nki,nkj->nij", centred, centred))
    return Shape(source.name, clouds, SampledSurface(surface, axes[:, :, 0]))
