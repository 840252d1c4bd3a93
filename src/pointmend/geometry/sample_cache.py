"""Geometry: Poisson-disk samples of meshes, made once and kept on disk."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .meshes import Mesh, poisson_disk

Float64 = NDArray[np.float64]


def default_cache() -> Path:
    """Where samples are kept between runs, unless the user names another folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pointmend" / "shapes"


def mesh_digest(mesh: Mesh) -> str:
    """A hash of the geometry itself, so that a cache never outlives a changed file."""
    content = hashlib.sha256(mesh.vertices.tobytes())
    content.update(mesh.faces.tobytes())
    return content.hexdigest()[:24]


def cached_poisson_disk(mesh: Mesh, count: int, cache: Path, digest: str) -> Float64:
    """
    A Poisson-disk cloud of a mesh, from the cache when it has been made before.

    Parameters
    ----------
    mesh : of a size around one: samples are kept in float32.
    count : points wanted.
    cache : folder; made when missing.
    digest : names the mesh in the cache.

    Returns
    -------
    (count, 3), the same whether it was kept or made.
    """
    file = cache / f"{digest}-{count}.npy"
    if not file.is_file():
        cloud = poisson_disk(mesh, count, np.random.default_rng(count))
        cache.mkdir(parents=True, exist_ok=True)
        # Two processes may sample the same mesh: each writes its own file, the last rename wins.
        with tempfile.NamedTemporaryFile(dir=cache, suffix=".tmp", delete=False) as temporary:
            np.save(temporary, cloud.astype(np.float32))
        Path(temporary.name).replace(file)
    kept: Float64 = np.load(file, allow_pickle=False).astype(np.float64)
    return kept
