"""Evaluation: the noisy example in the box, how it was made, and the truth about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.evaluation.noise import add_noise
from pointmend.geometry.meshes import Mesh, poisson_disk
from pointmend.geometry.procedural import demo_shape

Floats = NDArray[np.float64]

EXAMPLE = Path(__file__).resolve().parent.parent / "data" / "example.ply"
COUNT = 12_000
NOISE = 0.015
"""Standard deviation per axis; the shape fills the unit sphere, so this is 1.5 % noise."""
_SEED = 20250


def true_surface() -> Mesh:
    """The surface the example was sampled from."""
    return demo_shape()


def make_example() -> tuple[Floats, NDArray[np.uint8]]:
    """
    Sample the surface evenly, colour it and add noise.

    Returns
    -------
    Noisy positions (N, 3) and colours (N, 3), red, green and blue.
    """
    rng = np.random.default_rng(_SEED)
    clean = poisson_disk(true_surface(), COUNT, rng)
    # Colours run round the ring, to show that they stay with their points.
    angle = np.arctan2(clean[:, 1], clean[:, 0])[:, None]
    waves = 0.5 + 0.5 * np.cos(angle - np.array([0.0, 2.0, 4.0]) * np.pi / 3.0)
    colours = np.rint(60.0 + 190.0 * waves).astype(np.uint8)
    return add_noise(clean, "gaussian", NOISE, rng, radius=1.0), colours


def write_example(path: Path) -> None:
    """Make the example and write it as binary PLY with single-precision coordinates."""
    positions, colours = make_example()
    types = [(name, "<f4") for name in "xyz"] + [(name, "u1") for name in ("red", "green", "blue")]
    rows = np.empty(len(positions), dtype=types)
    for column, name in enumerate("xyz"):
        rows[name] = positions[:, column]
    for column, name in enumerate(("red", "green", "blue")):
        rows[name] = colours[:, column]
    header = [
        "ply",
        "format binary_little_endian 1.0",
        f"comment pointmend's example: a twisted ring with Gaussian noise of {NOISE} per axis",
        f"element vertex {len(rows)}",
        *(f"property float {name}" for name in "xyz"),
        *(f"property uchar {name}" for name in ("red", "green", "blue")),
        "end_header",
    ]
    path.write_bytes("\n".join(header).encode() + b"\n" + rows.tobytes())
