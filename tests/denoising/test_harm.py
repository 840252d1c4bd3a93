"""Do no harm: the shipped model on bodies whose surface is known, from no noise to a lot."""

from __future__ import annotations

import numpy as np
import pytest

from pointmend.denoising.denoiser import Denoiser
from pointmend.evaluation.scenes import BODIES, SAMPLINGS, Sampling, Scene, scene


@pytest.fixture(scope="module")
def denoiser() -> Denoiser:
    return Denoiser.load()


@pytest.fixture(scope="module", params=[(n, s) for s in SAMPLINGS for n in BODIES], ids=", ".join)
def what(request: pytest.FixtureRequest) -> Scene:
    name, sampling = request.param
    return scene(name, sampling, np.random.default_rng(0), spacing=0.09)


def after_over_before(denoiser: Denoiser, what: Scene, ratio: float) -> float:
    noisy = what.noisy(ratio, np.random.default_rng(1))
    return what.rms(denoiser.denoise(noisy, steps=2).points) / what.rms(noisy)


def test_clean_scans_stay_exactly_as_they_are(denoiser: Denoiser, what: Scene) -> None:
    result = denoiser.denoise(what.clean, steps=2)
    assert np.array_equal(result.points, what.clean)
    assert result.nothing_to_gain


def test_slight_noise_does_not_grow(denoiser: Denoiser, what: Scene) -> None:
    assert after_over_before(denoiser, what, 0.1) <= 1.02


def test_noise_as_wide_as_the_spacing_is_halved(denoiser: Denoiser, what: Scene) -> None:
    assert after_over_before(denoiser, what, 1.0) <= 0.5


@pytest.mark.parametrize("name", ["plane", "sphere"])
def test_noise_of_three_spacings_is_halved(denoiser: Denoiser, name: str) -> None:
    sampling: Sampling = "even"
    wide = scene(name, sampling, np.random.default_rng(0), spacing=0.09)
    assert after_over_before(denoiser, wide, 3.0) <= 0.5
