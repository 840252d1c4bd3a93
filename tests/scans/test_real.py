"""Real scans, when there are any: DATA/real of the folder POINTMEND_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pointmend import read
from pointmend.cloud.files import known_suffixes
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.settings import Settings
from pointmend.scans.budget import Budget, plan_file
from pointmend.scans.look import look_at
from pointmend.scans.pipeline import denoise_file

FOLDER = Path(os.environ.get("POINTMEND_DATA", "nowhere")) / "real"
SCANS = sorted(p for p in FOLDER.glob("*") if p.suffix.lower() in known_suffixes())
needs_scans = pytest.mark.skipif(not SCANS, reason="POINTMEND_DATA names no folder with scans")


@needs_scans
@pytest.mark.parametrize("path", SCANS, ids=lambda path: path.name)
def test_every_attribute_of_every_point_is_kept(
    tmp_path: Path, denoiser: Denoiser, path: Path
) -> None:
    target = tmp_path / path.name
    budget = plan_file(path, None)
    look = look_at(denoiser, path, budget)
    tally = denoise_file(denoiser, path, target, Settings(steps=1, careful=False), budget=budget)
    before, after = read(path), read(target)
    assert len(before) == len(after) == tally.points == look.points
    assert list(after.attributes) == list(before.attributes)
    for name, values in before.attributes.items():
        assert after.attributes[name].dtype == values.dtype
        assert after.attributes[name].tobytes() == values.tobytes()
    moved = np.linalg.norm(after.positions - before.positions, axis=1)
    finite = np.isfinite(before.positions).all(axis=1)
    assert np.array_equal(np.isfinite(after.positions).all(axis=1), finite)
    # Single precision at UTM offsets is coarser than the points lie; nothing finer can be asked.
    grid = np.spacing(np.abs(before.positions[finite]).max().astype(np.float32))
    assert abs(np.nanmax(moved) - tally.moved_largest) <= float(grid)


@needs_scans
@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_streamed_scans_keep_their_coordinates(
    tmp_path: Path, denoiser: Denoiser, suffix: str
) -> None:
    """Nobody moves at strength 0, and every coordinate comes back as it was."""
    path = min((p for p in SCANS if p.suffix == suffix), key=lambda p: p.stat().st_size)
    target = tmp_path / path.name
    settings = Settings(steps=1, strength=0.0)
    denoise_file(denoiser, path, target, settings, budget=Budget(1, 60_000, True, 0))
    assert np.array_equal(read(target).positions, read(path).positions)
