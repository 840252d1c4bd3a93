import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising import survey
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.survey import look_at_whole, noise_fills_space, reads_more, settles
from pointmend.geometry.meshes import sample_surface
from pointmend.geometry.procedural import thin_plate

Floats = NDArray[np.float64]
SAMPLER = Denoiser.load().sampler


def nearest_first(points: Floats) -> Floats:
    middle = points[len(points) // 2]
    return points[np.argsort(np.sum((points - middle) ** 2, axis=1))]


def noisy_ball(noise: float, count: int = 6000) -> Floats:
    rng = np.random.default_rng(1)
    points = rng.standard_normal((count, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return nearest_first(points + noise * rng.standard_normal(points.shape))


def noisy_hills(noise: float) -> Floats:
    rng = np.random.default_rng(0)
    x, y = (axis.ravel() + rng.uniform(-0.4, 0.4, 110**2) for axis in np.indices((110, 110)))
    hills = np.stack([x, y, 3.0 * np.sin(x / 20.0)], axis=1)
    return nearest_first(hills + noise * rng.standard_normal(hills.shape))[:4000]


@pytest.mark.parametrize(("noise", "expected"), [(1.0, True), (5.0, False)])
def test_noise_the_network_knows_settles_and_wider_noise_does_not(
    noise: float, expected: bool
) -> None:
    hills = noisy_hills(noise)
    assert settles(SAMPLER, look_at_whole(hills), 0, hills) == expected


@pytest.mark.parametrize(
    ("length", "sigma", "settled", "zooms"),
    [
        (0.5, 0.02, True, False),
        (0.5, 0.02, False, True),
        (0.5, 0.04, True, True),
        (1, 0.02, True, True),
    ],
    ids=["thin", "does not settle", "surely wide", "the sample is surely wide"],
)
def test_what_reads_wider_from_afar_may_be_thin(
    monkeypatch: pytest.MonkeyPatch, length: float, sigma: float, settled: bool, zooms: bool
) -> None:
    monkeypatch.setattr(survey, "settles", lambda *args: settled)
    ball = noisy_ball(0.06)
    seen = look_at_whole(ball)
    scores = SAMPLER.first_scores((ball - ball.mean(axis=0)) / seen.scale_of(0))[:1000]
    larger = reads_more(SAMPLER, seen, 0, ball[:4000], length * scores, sigma)
    assert (larger is not None) == zooms
    if larger is not None:
        assert larger.frame.scale > seen.frame.scale


def test_little_noise_reads_the_same_from_afar() -> None:
    ball = noisy_ball(0.01)
    seen = look_at_whole(ball)
    scores = SAMPLER.first_scores((ball - ball.mean(axis=0)) / seen.scale_of(0))[:1000]
    assert reads_more(SAMPLER, seen, 0, ball[:4000], scores, 0.01) is None


@pytest.mark.parametrize("patch_points", [0, 400])
def test_scores_of_the_first_points_are_those_of_all(patch_points: int) -> None:
    ball = noisy_ball(0.02, 2000)
    options = replace(SAMPLER.options, patch_points=patch_points)
    sampler = replace(SAMPLER, options=options)
    few = sampler.first_scores(ball, wanted=300)
    assert few == pytest.approx(sampler.first_scores(ball)[:300], abs=1e-6)
    assert len(sampler.first_scores(ball, wanted=3000)) == 2000


@pytest.mark.parametrize(("noise", "expected"), [(0.03, False), (0.1, True), (0.12, True)])
def test_noise_far_beyond_the_trained_fills_space(noise: float, expected: bool) -> None:
    ball = noisy_ball(noise, 20_000)
    seen = look_at_whole(ball)
    assert noise_fills_space(seen, 0, ball, ball[:1000]) == expected
    assert seen.zoomed_out is not None
    assert not noise_fills_space(seen.zoomed_out, 0, ball, ball[:1000])


def test_two_near_sides_under_trained_noise_do_not() -> None:
    rng = np.random.default_rng(0)
    plate = sample_surface(thin_plate(), 8000, rng)[0] + 0.03 * rng.standard_normal((8000, 3))
    assert not noise_fills_space(look_at_whole(plate), 0, plate, plate[:1000])


def test_noise_that_fills_space_is_measured_and_removed() -> None:
    ball = noisy_ball(0.12, 20_000)
    denoiser = Denoiser.load()
    assert denoiser.estimate_noise(ball).sigma == pytest.approx(0.12, rel=0.2)
    left = np.linalg.norm(denoiser.denoise(ball).points, axis=1) - 1.0
    before = np.linalg.norm(ball, axis=1) - 1.0
    assert np.sqrt(np.mean(left**2)) < 0.3 * np.sqrt(np.mean(before**2))


@pytest.mark.parametrize("sigma", [None, {-1: 0.1 / 3.0, 0: 0.2 / 3.0}])
def test_a_survey_survives_plain_values(sigma: dict[int, float] | None) -> None:
    found = replace(look_at_whole(noisy_ball(0.01)), sigma=sigma, gain=1.0 / 3.0)
    again = survey.Survey.from_dict(json.loads(json.dumps(found.to_dict())))
    assert np.array_equal(again.frame.centre, found.frame.centre)
    centre = found.frame.centre
    assert replace(again, frame=replace(again.frame, centre=centre)) == found
