import numpy as np
import pytest

from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.options import SamplerOptions
from pointmend.denoising.thinning import MOST_PARTS, lots_of, parts_for, score_in_parts


def test_parts_grow_with_the_noise_and_have_an_end() -> None:
    wanted = [parts_for(ratio, 1.0) for ratio in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 100.0)]
    assert wanted == sorted(wanted)
    assert wanted[:3] == [1, 1, 1]
    assert 1 < wanted[4] < MOST_PARTS
    assert wanted[-1] == MOST_PARTS
    assert parts_for(0.3, 0.1) == parts_for(3.0, 1.0)
    assert parts_for(1.0, 0.0) == 1


@pytest.mark.parametrize("step", [1e-3, 0.25, 1.0])
def test_lots_are_drawn_evenly_even_from_rounded_coordinates(step: float) -> None:
    rng = np.random.default_rng(0)
    points = np.unique(step * rng.integers(0, 400, (8000, 3)) + 4_918_000.0, axis=0)
    for parts in range(2, MOST_PARTS + 1):
        counts = np.bincount((lots_of(points) % np.uint64(parts)).astype(int), minlength=parts)
        assert counts.min() > 0.9 * len(points) / parts


def test_lots_depend_on_the_point_alone() -> None:
    points = np.random.default_rng(1).standard_normal((100, 3))
    shuffled = np.random.default_rng(2).permutation(100)
    assert np.array_equal(lots_of(points[shuffled]), lots_of(points)[shuffled])
    assert np.array_equal(lots_of(points[:7]), lots_of(points)[:7])


def test_every_point_is_scored_among_its_own_part() -> None:
    x = np.arange(30.0).reshape(10, 3)
    part = np.array([0, 2, 0, 2, 2, 0, 0, 2, 0, 2])
    found = score_in_parts(x, part, lambda rows: x[rows] - x[rows].mean(axis=0))
    for number in (0, 2):
        rows = part == number
        assert np.array_equal(found[rows], x[rows] - x[rows].mean(axis=0))


def test_wide_noise_is_removed_better_in_parts() -> None:
    rng = np.random.default_rng(0)
    count, noise = 30_000, 0.035
    along, around = rng.uniform(0.0, 2.0 * np.pi, (2, count))
    radius = 0.7 + 0.3 * np.cos(around)
    clean = np.stack([radius * np.cos(along), radius * np.sin(along), 0.3 * np.sin(around)], axis=1)
    noisy = clean + noise * rng.standard_normal(clean.shape)

    def rms(thinning: bool) -> float:
        denoiser = Denoiser.load(options=SamplerOptions(thinning=thinning))
        x, y, z = denoiser.denoise(noisy, steps=2).points.T
        off = np.hypot(np.hypot(x, y) - 0.7, z) - 0.3
        return float(np.sqrt(np.mean(off**2)))

    assert rms(thinning=True) < 0.95 * rms(thinning=False) < 0.25 * noise


def test_little_noise_is_never_scored_in_parts() -> None:
    rng = np.random.default_rng(4)
    points = rng.standard_normal((2000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    noisy = points + 0.01 * rng.standard_normal(points.shape)
    results = [
        Denoiser.load(options=SamplerOptions(thinning=thinning)).denoise(noisy, steps=2).points
        for thinning in (False, True)
    ]
    assert np.array_equal(results[0], results[1])
