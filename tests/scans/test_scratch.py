from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising.moved import Moved
from pointmend.denoising.store import MemoryStore
from pointmend.geometry.tiles import split_evenly
from pointmend.scans.scratch import ScratchStore, scratch_folder

Float64 = NDArray[np.float64]


@pytest.fixture
def points() -> Float64:
    positions = np.random.default_rng(0).normal(size=(5000, 3)) + 5e6
    positions[[3, 4000]] = np.nan
    return positions


@pytest.mark.parametrize("tiles", [1, 7])
@pytest.mark.parametrize("rows", [999, 10_000])
def test_it_holds_what_a_store_in_memory_does(
    tmp_path: Path, points: Float64, tiles: int, rows: int
) -> None:
    def pieces() -> Iterator[Float64]:
        return (points[first : first + rows] for first in range(0, len(points), rows))

    finite = points[np.isfinite(points).all(axis=1)]
    tiling = split_evenly(finite, tiles)
    store, memory = ScratchStore.sort(tmp_path, tiling, pieces), MemoryStore(finite, tiling)
    assert (store.count, store.rows) == (4998, 5000)
    for tile in range(tiles):
        read = store.read(tile)
        assert np.array_equal(read, memory.read(tile))
        moved = Moved(-read, read[:, 0], read[:, 1], read[:, 2] > 5e6, (3.0, 0.0))
        store.write(tile, moved)
    assert store.times == (3.0, 0.0)
    for first in (0, 3999, 4990):
        found = store.results(first, 20)
        wanted = np.nan_to_num(points[first : first + 20], nan=0.0)
        assert np.array_equal(found.shift, -wanted)
        assert np.allclose(found.shares, wanted[:, 0], rtol=1e-6)
        assert np.allclose(found.sigma, wanted[:, 1], rtol=1e-6)
        assert np.array_equal(found.outlier, wanted[:, 2] > 5e6)
    assert store.outliers() == np.sum(finite[:, 2] > 5e6)
    assert store.mean_sigma() == pytest.approx(finite[:, 1].mean(), rel=1e-6)
    again = ScratchStore(tmp_path, tiling, store.counts, store.rows)
    assert np.array_equal(again.read(0), store.read(0))
    assert np.array_equal(again.results(0, 5000).shift, store.results(0, 5000).shift)


def test_results_are_nothing_until_they_are_written(tmp_path: Path, points: Float64) -> None:
    store = ScratchStore.sort(tmp_path, split_evenly(points[:0], 1), lambda: iter([points]))
    assert not store.results(0, 5000).shift.any()
    assert store.outliers() == 0


def test_the_folder_is_private_and_goes_away(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "a.las") as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "tiles").write_bytes(b"1")
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path / "a.las"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
