"""Tiles, density levels and care, with scores that are known exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pointmend.denoising import algorithm
from pointmend.denoising.algorithm import Progress, Sampler
from pointmend.denoising.amends import Amends
from pointmend.denoising.denoiser import Denoiser, noise_of
from pointmend.denoising.first_look import FirstLook
from pointmend.denoising.options import SamplerOptions
from pointmend.denoising.settings import Settings
from pointmend.denoising.store import MemoryStore, Neighbourhoods
from pointmend.denoising.survey import look_at_whole, survey_store
from pointmend.denoising.tiled import denoise_store, denoise_tile
from pointmend.errors import InputError
from pointmend.geometry.tiles import split_evenly
from pointmend.network.config import NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard

Float64 = NDArray[np.float64]


class PlaneScorer:
    """Stands in for the network: the surface is the plane z = 0 of the frame it is shown."""

    asked: list[int] = []  # noqa: RUF012 (shared on purpose, emptied by each test)

    def __init__(self, network: Any, patches: Any, device: Any, batch: int, *rest: Any) -> None:
        self.patches = patches

    def __call__(
        self, x: Float64, time: float, sigma: float = 0.0, owed: Amends | None = None
    ) -> Float64:
        PlaneScorer.asked.append(len(x))
        flat = x[:, 2] - np.median(x[:, 2])
        return np.asarray(-flat[:, None] * np.array([0.0, 0.0, 1.0]))

    def first_look(self, x: Float64) -> FirstLook:
        return FirstLook(self(x, 1.0), *np.zeros((2, len(x), 0)))


@pytest.fixture
def _plane_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    PlaneScorer.asked.clear()
    monkeypatch.setattr(algorithm, "PatchScorer", PlaneScorer)


LOCAL = NetworkConfig(
    channels=8, hidden=8, layers=1, blocks=1, frame="point", planes=True, graph_candidates=16
)


def sampler() -> Sampler:
    torch.manual_seed(0)
    return Sampler(ScoreNetwork(LOCAL), None, SamplerOptions(), torch.device("cpu"))


def terrain(count: int, noise: float, step: float = 0.1, seed: int = 0) -> Float64:
    """A plane with points `step` apart and noise of so many steps across it."""
    rng = np.random.default_rng(seed)
    side = int(np.sqrt(count))
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    flat = np.stack([x, y, 0.0 * x], axis=-1).reshape(-1, 3).astype(float)
    flat[:, :2] += rng.uniform(-0.3, 0.3, (len(flat), 2))
    flat[:, 2] = noise * rng.standard_normal(len(flat))
    return step * flat


def run(
    points: Float64,
    tiles: int,
    settings: Settings,
    report: Callable[[Progress], None] | None = None,
) -> MemoryStore:
    store = MemoryStore(points, split_evenly(points, tiles))
    survey = look_at_whole(points) if tiles == 1 else survey_store(sampler(), store, points)
    denoise_store(sampler(), store, survey, settings, report or (lambda state: None))
    return store


@pytest.mark.usefixtures("_plane_scores")
@pytest.mark.parametrize("tiles", [1, 4])
def test_every_point_gets_the_result_of_its_own_tile(tiles: int) -> None:
    points = terrain(2500, 0.6)
    found = run(points, tiles, Settings(steps=1)).found
    assert np.allclose(found.shift[:, 2], -points[:, 2], atol=0.005)
    assert not found.shift[:, :2].any()
    assert (found.shares == 1.0).all()
    assert np.allclose(found.sigma, 0.06, rtol=0.1)


@pytest.mark.usefixtures("_plane_scores")
def test_tiles_share_one_noise_unless_each_is_to_read_its_own() -> None:
    points = terrain(2500, 0.3)
    points = points[points[:, 1] < 2.5]  # so that tiles are left and right
    points[points[:, 0] > 2.5, 2] *= 3.0
    shared = run(points, 2, Settings(steps=1)).found.sigma
    assert len(np.unique(shared)) == 1
    local = run(points, 2, Settings(steps=1, local_noise=True)).found.sigma
    assert local.min() == pytest.approx(0.03, rel=0.1)
    assert local.max() == pytest.approx(0.09, rel=0.1)


@pytest.mark.usefixtures("_plane_scores")
def test_a_tile_does_not_depend_on_the_tiles_before_it() -> None:
    points = terrain(2500, 0.6)
    store = MemoryStore(points, split_evenly(points, 4))
    settings = Settings(steps=2, eta=0.5)
    survey = survey_store(sampler(), store, points)
    denoise_store(sampler(), store, survey, settings, lambda state: None)
    for tile in (3, 1):
        alone = denoise_tile(
            sampler(), Neighbourhoods(store), tile, survey, settings, lambda state: None
        )
        assert alone is not None
        assert np.array_equal(alone.shift, store.found.shift[store.rows(tile)])


@pytest.mark.usefixtures("_plane_scores")
def test_clean_clouds_stay_exactly_where_they_are_and_cost_one_look() -> None:
    points = terrain(2500, 0.001)
    assert not run(points, 1, Settings()).found.shift.any()
    assert len(PlaneScorer.asked) == 1
    forced = run(points, 1, Settings(careful=False, sigma=0.01)).found
    assert np.allclose(forced.shift[:, 2], -points[:, 2], atol=1e-4)


@pytest.mark.usefixtures("_plane_scores")
def test_no_point_goes_farther_than_allowed() -> None:
    points = terrain(2500, 0.3)
    points[1234, 2] = 0.6
    length = np.linalg.norm(run(points, 1, Settings()).found.shift, axis=1)
    assert length[1234] < 0.5
    free = run(points, 1, Settings(max_displacement=10.0)).found
    assert np.linalg.norm(free.shift[1234]) == pytest.approx(0.6, rel=0.02)
    tight = run(points, 1, Settings(max_displacement=0.01)).found
    assert np.linalg.norm(tight.shift, axis=1).max() == pytest.approx(0.01)
    half = run(points, 1, Settings(strength=0.5)).found
    assert np.allclose(half.shift[5], 0.5 * run(points, 1, Settings()).found.shift[5])


@pytest.mark.usefixtures("_plane_scores")
@pytest.mark.parametrize("tiles", [1, 3])
def test_outliers_neither_move_nor_take_part(tiles: int) -> None:
    points = terrain(2500, 0.3)
    points[[7, 1900], 2] = [3.0, -4.0]
    found = run(points, tiles, Settings(outliers=3.0)).found
    assert found.outlier[[7, 1900]].all()
    assert not found.shift[found.outlier].any()
    assert found.outlier.sum() < 10
    if tiles == 1:
        assert PlaneScorer.asked[0] == 2500 - found.outlier.sum()


@pytest.mark.usefixtures("_plane_scores")
def test_densities_are_worked_on_apart_and_each_at_its_own_scale() -> None:
    fine, coarse = terrain(1600, 0.3, 0.01), terrain(900, 0.3, 1.0, seed=1)
    points = np.concatenate([fine, coarse + np.array([100.0, 0.0, 0.0])])
    survey = look_at_whole(points)
    assert len(survey.levels) == 2
    found = run(points, 1, Settings(steps=1)).found
    assert np.median(found.sigma[:1600]) == pytest.approx(0.003, rel=0.15)
    assert np.median(found.sigma[1600:]) == pytest.approx(0.3, rel=0.15)
    # The far one lends nothing to the other, and is not computed with it.
    assert sorted(PlaneScorer.asked) == [900, 1600]


@pytest.mark.usefixtures("_plane_scores")
def test_copies_move_together() -> None:
    points = terrain(900, 0.3)
    twice = np.concatenate([points, points[:100]])
    found = run(twice, 4, Settings(steps=1)).found
    assert np.array_equal(found.shift[:100], found.shift[900:])


@pytest.mark.usefixtures("_plane_scores")
def test_progress_counts_tiles_and_shows_each_after_its_steps() -> None:
    points, states = terrain(2500, 0.3), list[Progress]()
    store = run(points, 3, Settings(steps=2), states.append)
    assert {(s.region, s.regions) for s in states} == {(0, 3), (1, 3), (2, 3)}
    last = {s.region: s.positions for s in states if s.positions is not None}
    for region, shown in last.items():
        rows = store.rows(region)
        assert np.allclose(shown, points[rows] + store.found.shift[rows])
    states.clear()
    found = run(points, 1, Settings(steps=2), states.append).found
    assert states[-1].positions is not None
    assert np.allclose(states[-1].positions, points + found.shift)


@pytest.mark.usefixtures("_plane_scores")
def test_progress_shows_all_densities_of_a_cloud() -> None:
    dense, sparse = terrain(900, 0.3), 8.0 * terrain(900, 0.05) + np.array([300.0, 0.0, 0.0])
    points, states = np.concatenate([dense, sparse]), list[Progress]()
    found = run(points, 1, Settings(steps=2), states.append).found
    last = [s.positions for s in states if s.positions is not None][-1]
    assert np.allclose(last, points + found.shift)
    assert (found.shift[:900] != 0.0).any()
    assert (found.shift[900:] != 0.0).any()


def test_surroundings_hold_all_that_is_near_and_little_else() -> None:
    points = terrain(10_000, 0.1)
    store = MemoryStore(points, split_evenly(points, 9))
    near = Neighbourhoods(store)
    for tile in range(9):
        own, around = store.read(tile), near.around(tile)
        everything = np.concatenate([own, around])
        assert len(np.unique(everything, axis=0)) == len(everything)
        missing = points[store.tiling.tile_of(points) != tile]
        missing = missing[store.tiling.distance(tile, missing) <= 4.0]
        assert set(map(tuple, missing)) <= set(map(tuple, around))
        if len(around):
            assert store.tiling.distance(tile, around).max() < 7.0


@pytest.mark.usefixtures("_plane_scores")
def test_a_survey_finds_the_same_whatever_the_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointmend.denoising.survey.FRAMED_WHOLE", 1000)
    monkeypatch.setattr("pointmend.denoising.survey.PLACE_POINTS", 900)
    monkeypatch.setattr("pointmend.denoising.survey.PLACE_TRUSTED_POINTS", 300)
    points = terrain(10_000, 0.3)
    found = [
        survey_store(sampler(), MemoryStore(points, split_evenly(points, tiles)), points[::3])
        for tiles in (2, 5)
    ]
    assert found[0].sigma == found[1].sigma
    assert found[0].frame.spacing == pytest.approx(found[1].frame.spacing)
    estimate = noise_of(found[0])
    assert estimate.sigma == pytest.approx(0.03, rel=0.15)
    assert not estimate.nothing_to_gain


def test_tiles_hardly_change_what_a_real_network_finds() -> None:
    """The shipped model on a hilly plane: five tiles against one."""
    points = terrain(12_000, 0.5) + np.array([5e5, 5e6, 100.0])
    points[:, 2] += 0.5 * np.sin(points[:, 0])
    whole = Denoiser.load(options=SamplerOptions(tile_points=20_000)).denoise(points, steps=1)
    tiled = Denoiser.load(options=SamplerOptions(tile_points=2_500)).denoise(points, steps=1)
    error = np.linalg.norm(whole.points - tiled.points, axis=1) / 0.05
    assert np.sqrt(np.mean(error**2)) < 2e-3
    assert tiled.sigma == pytest.approx(whole.sigma, rel=0.03)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"eta": 2.0}, "eta is 2"),
        ({"strength": -1.0}, "strength is -1"),
        ({"sigma": float("nan")}, "sigma is nan"),
        ({"max_displacement": -1.0}, "max_displacement is -1"),
        ({"max_displacement": float("nan")}, "max_displacement is nan"),
        ({"outliers": 1.0}, "outliers is 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError, match=part):
        Settings(**settings)


def test_ignored_points_stay_and_do_not_pull() -> None:
    torch.manual_seed(0)
    denoiser = Denoiser(ScoreNetwork(LOCAL).eval(), ModelCard(LOCAL), torch.device("cpu"))
    points = terrain(900, 0.5)
    ignore = np.zeros(900, dtype=bool)
    ignore[::7] = True
    result = denoiser.denoise(points, steps=1, careful=False, ignore=ignore)
    assert np.array_equal(result.points[ignore], points[ignore])
    alone = denoiser.denoise(points[~ignore], steps=1, careful=False)
    assert np.array_equal(result.points[~ignore], alone.points)
    with pytest.raises(InputError, match="ignore must be 900 truth values"):
        denoiser.denoise(points, ignore=ignore[:-1])
