import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising import survey
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.survey import look_at_whole, reads_more, settles

Floats = NDArray[np.float64]
SAMPLER = Denoiser.load().sampler


def nearest_first(points: Floats) -> Floats:
    middle = points[len(points) // 2]
    return points[np.argsort(np.sum((points - middle) ** 2, axis=1))]


def noisy_ball(noise: float) -> Floats:
    rng = np.random.default_rng(1)
    points = rng.standard_normal((6000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return nearest_first(points + noise * rng.standard_normal(points.shape))


def noisy_hills(noise: float) -> Floats:
    rng = np.random.default_rng(0)
    x, y = (axis.ravel() + rng.uniform(-0.4, 0.4, 110**2) for axis in np.indices((110, 110)))
    hills = np.stack([x, y, 3.0 * np.sin(x / 20.0)], axis=1)
    return nearest_first(hills + noise * rng.standard_normal(hills.shape))[:4000]


@pytest.mark.parametrize(("noise", "expected"), [(1.0, True), (4.0, False)])
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


@pytest.mark.parametrize("sigma", [None, {-1: 0.1 / 3.0, 0: 0.2 / 3.0}])
def test_a_survey_survives_plain_values(sigma: dict[int, float] | None) -> None:
    found = replace(look_at_whole(noisy_ball(0.01)), sigma=sigma, gain=1.0 / 3.0)
    again = survey.Survey.from_dict(json.loads(json.dumps(found.to_dict())))
    assert np.array_equal(again.frame.centre, found.frame.centre)
    centre = found.frame.centre
    assert replace(again, frame=replace(again.frame, centre=centre)) == found
