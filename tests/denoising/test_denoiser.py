from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pointmend.denoising.algorithm import Progress
from pointmend.denoising.denoiser import Denoiser, as_points, pick_device
from pointmend.denoising.options import SamplerOptions
from pointmend.errors import InputError
from pointmend.evaluation.contract import (
    BrokenPromiseError,
    Promise,
    check_denoiser,
    hard_clouds,
)
from pointmend.geometry.frames import PREFERRED_SPACING
from pointmend.network.config import DEFAULT, PAPER, NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard

Float64 = NDArray[np.float64]
SMALL: dict[str, Any] = {"channels": 16, "hidden": 16, "layers": 2, "blocks": 1}


def small_denoiser(config: NetworkConfig = DEFAULT, **options: Any) -> Denoiser:
    """A network that starts near plane fitting, or at doing nothing; quick, and untrained."""
    torch.manual_seed(0)
    config = replace(config, **SMALL)
    network = ScoreNetwork(config).eval()
    return Denoiser(network, ModelCard(config), torch.device("cpu"), SamplerOptions(**options))


def noisy_sphere(count: int = 1200, sigma: float = 0.02) -> Float64:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x + sigma * rng.standard_normal((count, 3))


# An untrained network smooths: a clean curved cloud moves by more than a trained one may.
UNTRAINED = Promise(clean=3.0)


def test_the_shipped_model_keeps_the_contract() -> None:
    shipped = Denoiser.load("default", device="cpu")
    check_denoiser(lambda points: shipped.denoise(points).points)


def test_spreading_keeps_the_contract_and_evens_the_points_out() -> None:
    shipped = Denoiser.load()
    check_denoiser(lambda points: shipped.denoise(points, spread=True).points)
    noisy = noisy_sphere()

    def unevenness(spread: bool) -> float:
        points = shipped.denoise(noisy, spread=spread).points
        nearest = cKDTree(points).query(points, k=2)[0][:, 1]
        return float(nearest.std() / nearest.mean())

    # A single round after the last step would come to 0.29.
    assert unevenness(spread=True) < 0.27 * unevenness(spread=False)


def test_independent_patches_cannot_be_spread() -> None:
    with pytest.raises(InputError, match="independent patches cannot be spread"):
        small_denoiser(mode="independent").denoise(noisy_sphere(), spread=True)


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
def test_an_untrained_local_network_keeps_the_contract(mode: str) -> None:
    denoiser = small_denoiser(mode=mode)
    check_denoiser(lambda points: denoiser.denoise(points, steps=2).points, UNTRAINED)


@pytest.mark.parametrize("mode", ["synchronised", "independent"])
def test_the_patch_frame_keeps_the_contract(mode: str) -> None:
    config = replace(DEFAULT, frame="patch")
    denoiser = small_denoiser(config, mode=mode, patch_points=500, overlap=2.0)
    check_denoiser(lambda points: denoiser.denoise(points, steps=2).points, UNTRAINED)


def test_the_papers_network_keeps_the_contract_but_for_rotation() -> None:
    denoiser = small_denoiser(PAPER, patch_points=500, overlap=2.0)
    promise = replace(UNTRAINED, rotation=np.inf)
    check_denoiser(lambda points: denoiser.denoise(points, steps=2, sigma=0.01).points, promise)


def shrink_by_a_fixed_length(x: Float64) -> Float64:
    arm = x - x.mean(axis=0)
    return np.asarray(x - 0.01 * arm / (np.linalg.norm(arm, axis=1, keepdims=True) + 1e-300))


def divide_by_the_extent(x: Float64) -> Float64:
    extent = np.ptp(x - x[0], axis=0).max()
    return np.asarray(x[0] + (x - x[0]) / extent * extent)


BROKEN: dict[str, Callable[[Float64], Float64]] = {
    "came out": lambda x: x[:-1],
    "permutation": lambda x: np.sort(x, axis=0),
    "two runs": lambda x: x + np.random.default_rng().random(),
    "rotation": lambda x: x + np.array([0.01, 0.0, 0.0]),
    "translation": lambda x: x * 0.99,
    "scale": shrink_by_a_fixed_length,
    "clean": lambda x: np.tile(x.mean(axis=0), (len(x), 1)),
    "finite": divide_by_the_extent,
}


@pytest.mark.parametrize("message", BROKEN)
def test_the_contract_notices_what_is_broken(message: str) -> None:
    broken = BROKEN[message]
    with np.errstate(all="ignore"), pytest.raises(BrokenPromiseError, match=message):
        check_denoiser(lambda points: broken(points) if len(points) else points)


def test_the_contract_notices_a_changed_input() -> None:
    def mutate(points: Float64) -> Float64:
        points += 1.0
        return points

    with pytest.raises(BrokenPromiseError, match="changed"):
        check_denoiser(mutate)


@pytest.mark.parametrize("kind", ["list", "float32", "tensor"])
def test_points_come_in_many_kinds(kind: str) -> None:
    points = noisy_sphere(200).astype(np.float32)
    given: Any = {"list": points.tolist(), "float32": points, "tensor": torch.from_numpy(points)}
    result = small_denoiser().denoise(given[kind], steps=1)
    assert result.points.dtype == np.float64
    expected = small_denoiser().denoise(points.astype(np.float64), steps=1)
    assert np.array_equal(result.points, expected.points)


@pytest.mark.parametrize(
    "wrong", [np.zeros((5, 4)), np.zeros((5, 2)), np.zeros(6), np.zeros((2, 2, 3)), [["a", 1, 2]]]
)
def test_other_shapes_are_refused_with_their_shape(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"shape \(N, 3\)|numbers"):
        as_points(wrong)


@pytest.mark.parametrize(
    "setting", [{"steps": 0}, {"eta": 1.5}, {"strength": -0.1}, {"sigma": np.nan}, {"sigma": -1.0}]
)
def test_settings_that_mean_nothing_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        small_denoiser().denoise(noisy_sphere(50), **setting)


def test_rows_with_nan_stay_in_place_and_do_not_matter() -> None:
    points = noisy_sphere(400)
    holes = np.insert(points, [0, 100, 400], [[np.nan, 1, 2], [0, np.inf, 0], [0, 0, -np.inf]], 0)
    result = small_denoiser().denoise(holes)
    bad = ~np.isfinite(holes).all(axis=1)
    assert np.array_equal(result.invalid, bad)
    assert np.array_equal(result.points[bad], holes[bad], equal_nan=True)
    assert np.array_equal(result.points[~bad], small_denoiser().denoise(points).points)
    assert np.all(result.displacement[bad] == 0.0)


def test_coordinates_near_infinity_count_as_infinite() -> None:
    points = noisy_sphere(400)
    absurd = np.insert(points, [7], [[1e300, 0.0, 0.0]], 0)
    result = small_denoiser().denoise(absurd)
    assert np.flatnonzero(result.invalid).tolist() == [7]
    assert np.array_equal(
        np.delete(result.points, 7, axis=0), small_denoiser().denoise(points).points
    )
    estimate = small_denoiser().estimate_noise(absurd)
    assert estimate == small_denoiser().estimate_noise(points)


def test_only_nan_is_returned_as_it_came() -> None:
    given = np.full((4, 3), np.nan)
    result = small_denoiser().denoise(given)
    assert result.invalid.all()
    assert np.isnan(result.points).all()
    assert not np.shares_memory(result.points, given)


def test_points_in_one_place_move_together() -> None:
    points = noisy_sphere(300)
    doubled = small_denoiser().denoise(np.vstack([points, points[:50]])).points
    assert np.array_equal(doubled[:50], doubled[300:])
    assert np.array_equal(doubled[:300], small_denoiser().denoise(points).points)


def test_a_million_copies_of_a_few_points_do_not_hang() -> None:
    points = np.repeat(noisy_sphere(20), 50_000, axis=0)
    assert np.isfinite(small_denoiser().denoise(points, steps=1).points).all()


def test_utm_coordinates_lose_nothing() -> None:
    points = noisy_sphere(800)
    shift = np.array([5e5, 5e6, 1e3])
    near = small_denoiser().denoise(points).points
    far = small_denoiser().denoise(points + shift).points - shift
    assert np.abs(far - near).max() < 1e-6


def test_the_batch_size_does_not_matter() -> None:
    points = noisy_sphere(900)
    results = [
        small_denoiser(batch=b, patch_points=200, overlap=3.0).denoise(points).points
        for b in (1, 5)
    ]
    assert np.abs(results[0] - results[1]).max() < 1e-5


def test_a_patch_in_a_cloud_ten_times_larger_is_denoised_the_same() -> None:
    """
    The scale must come from the spacing, not from whatever else is in the cloud.

    Alone, the patch goes to the unit sphere, where its spacing is just the one that any cloud out
    of the known range is brought to.
    """
    rng = np.random.default_rng(3)
    pitch, sigma = 0.0188, 0.009
    grid = np.stack(np.meshgrid(*[np.arange(-0.7, 0.7, pitch)] * 2), axis=-1).reshape(-1, 2)
    patch = np.column_stack([grid, 0.1 * grid[:, 0] ** 2])
    strip = np.stack(np.meshgrid(np.arange(2, 16, pitch), [0.0, pitch]), axis=-1).reshape(-1, 2)
    far = np.column_stack([strip, np.zeros(len(strip))])
    patch, far = (x + sigma * rng.standard_normal(x.shape) for x in (patch, far))
    denoiser = Denoiser.load("default", device="cpu")
    alone = denoiser.denoise(patch, steps=1)
    embedded = denoiser.denoise(np.vstack([patch, far]), steps=1)
    assert embedded.spacing == pytest.approx(alone.spacing, rel=0.05)
    assert alone.spacing == pytest.approx(PREFERRED_SPACING, rel=0.05)
    inner = np.abs(grid).max(axis=1) < 0.5
    gap = (embedded.points[: len(patch)] - alone.points)[inner]
    assert np.sqrt(np.mean(np.sum(gap**2, axis=1))) < 0.1 * sigma


def test_strength_scales_the_displacement() -> None:
    points = noisy_sphere(400)
    whole, half, none = (small_denoiser().denoise(points, strength=s) for s in (1.0, 0.5, 0.0))
    assert np.allclose(half.points - points, 0.5 * (whole.points - points), atol=1e-12)
    assert np.array_equal(none.points, points)
    assert np.allclose(whole.displacement, np.linalg.norm(whole.points - points, axis=1))


def test_progress_shows_the_cloud_in_input_units() -> None:
    points = 100.0 * noisy_sphere(400) + 1000.0
    points[7] = np.nan
    seen: list[Progress] = []
    result = small_denoiser().denoise(points, progress=seen.append)
    last = seen[-1].positions
    assert last is not None
    assert np.allclose(last, result.points, equal_nan=True, atol=1e-9)


def test_progress_of_tiles_says_which_points_it_shows() -> None:
    points = noisy_sphere(2500)
    points[7] = np.nan
    tiled = small_denoiser(tile_points=1000)
    shown = points.copy()

    def show(state: Progress) -> None:
        if state.positions is not None:
            assert state.rows is not None
            shown[state.rows] = state.positions

    result = tiled.denoise(points, steps=1, progress=show)
    assert np.allclose(shown, result.points, equal_nan=True, atol=1e-9)
    assert not np.allclose(shown, points, equal_nan=True, atol=1e-9)


def test_a_far_outlier_is_left_where_it_is() -> None:
    points = hard_clouds()["one far outlier"]
    result = small_denoiser().denoise(points)
    assert result.displacement[-1] < 1.0


def test_the_noise_estimate_is_in_input_units() -> None:
    points = noisy_sphere(2000)
    one = small_denoiser().estimate_noise(points)
    big = small_denoiser().estimate_noise(1000.0 * points)
    assert big.sigma == pytest.approx(1000.0 * one.sigma, rel=1e-3)
    assert big.spacing == pytest.approx(1000.0 * one.spacing)
    assert one.in_trained_range
    assert small_denoiser().denoise(points).sigma == pytest.approx(one.sigma)
    assert not small_denoiser().estimate_noise([[0.0, 0.0, 0.0]]).in_trained_range


def test_equal_seeds_give_equal_results_and_others_do_not() -> None:
    points = noisy_sphere(500)
    runs = [small_denoiser().denoise(points, eta=1.0, seed=s).points for s in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_devices_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match="unknown device"):
        pick_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="CUDA"):
            pick_device("cuda")
    assert pick_device("auto").type in ("cpu", "cuda")
