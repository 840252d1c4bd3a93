"""Noise from all that a first look shows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising.first_look import FirstLook, trimmed_rms
from pointmend.denoising.noise_fit import NoiseFit, fit_noise, signs_of
from pointmend.errors import InputError

Floats = NDArray[np.float64]


def look(count: int = 500, seed: int = 0, size: float = 0.01) -> FirstLook:
    rng = np.random.default_rng(seed)
    spreads = size * rng.uniform(0.5, 2.0, (count, 6))
    scores = size * rng.standard_normal((count, 3))
    return FirstLook(scores, spreads, rng.uniform(1.0, 2.0, (count, 3)))


def readings(shapes: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Signs (M, 9) and noise (M,): flat shapes have short scores, bent ones wide spreads."""
    rng = np.random.default_rng(seed)
    spacing = rng.uniform(0.008, 0.03, shapes)
    level = rng.uniform(0.5, 3.0, shapes)
    bent, thin = rng.uniform(0.0, 0.3, (2, shapes))
    rms = level * (0.6 + bent) * (spacing / 0.01) ** 0.1
    wide, wider, near = level * (1.0 + bent**2 + thin), level * (1.0 + 4.0 * bent**2), 0.9 * level
    lengths = rms * 1.5, 0.1 * rms
    columns = [np.log(each) for each in (rms, spacing, wide, wider, near, *lengths)]
    return np.stack([*columns, 1.3 + bent, 1.7 - thin], axis=1), level * spacing


def test_noise_of_other_shapes_is_found() -> None:
    fit = fit_noise(*readings(400))
    signs, sigma = readings(50, seed=1)
    found = np.array([fit.sigma(each) for each in signs])
    assert np.abs(found / sigma - 1.0).max() < 0.05


def test_a_few_odd_shapes_do_not_bend_it() -> None:
    signs, sigma = readings(400)
    odd = np.where(np.arange(400) % 20 == 0, np.log(0.5), 0.0)
    bent = fit_noise(signs + np.eye(9)[0] * odd[:, None], sigma)
    fit = fit_noise(signs, sigma)
    others, _ = readings(50, seed=1)
    expected = [fit.sigma(each) for each in others]
    assert [bent.sigma(each) for each in others] == pytest.approx(expected, rel=0.05)


def test_what_weighs_more_counts_more() -> None:
    signs, sigma = readings(200)
    twice = np.concatenate([signs, signs]), np.concatenate([sigma, 1.5 * sigma])
    first = np.repeat([1.0, 0.01], 200)
    for weights, factor in ((first, 1.0), (first[::-1], 1.5)):
        fit = fit_noise(*twice, weights)
        assert np.median([fit.sigma(each) for each in signs] / sigma) == pytest.approx(
            factor, rel=0.02
        )


def test_beyond_what_it_knows_noise_grows_with_the_scores() -> None:
    fit = fit_noise(*readings(300))
    far = np.array([5.0, *readings(1)[0][0, 1:]])
    farther = far + np.log(10.0) * np.eye(9)[0]
    assert fit.sigma(farther) == pytest.approx(10.0 * fit.sigma(far))


def test_one_reading_is_enough_and_right() -> None:
    signs, sigma = readings(1)
    assert fit_noise(signs, sigma).sigma(signs[0]) == pytest.approx(sigma[0])


def test_signs_are_those_of_the_distribution() -> None:
    what = look()
    signs = signs_of(what, 0.02)
    assert signs is not None
    lengths = np.linalg.norm(what.scores, axis=1)
    expected = [trimmed_rms(what.scores) / 0.02, 0.02, *np.median(what.spreads, axis=0)[4:] / 0.02]
    expected += [
        np.quantile(what.spreads[:, 1], 0.25) / 0.02,
        *np.quantile(lengths, (0.9, 0.05)) / 0.02,
    ]
    assert np.exp(signs[:7]) == pytest.approx(expected)
    shorter = np.sort(lengths)[:490]
    assert signs[7] == pytest.approx(np.sqrt(np.mean(shorter**4)) / np.mean(shorter**2))
    assert signs[8] == pytest.approx(np.quantile(what.tails[:, 1], 0.25))
    assert np.exp(signs[9]) == pytest.approx(np.quantile(what.spreads[:, 0], 0.25) / 0.02)


def test_signs_do_not_depend_on_the_unit_but_for_that_of_the_spacing() -> None:
    small, large = signs_of(look(size=0.01), 0.02), signs_of(look(size=0.1), 0.2)
    assert small is not None
    assert large is not None
    assert np.delete(large, 1) == pytest.approx(np.delete(small, 1))


def test_a_cloud_that_does_not_move_has_finite_signs() -> None:
    still = replace(look(), scores=np.zeros((500, 3)), spreads=np.zeros((500, 6)))
    signs = signs_of(still, 0.02)
    assert signs is not None
    assert np.isfinite(signs).all()


def test_who_sees_no_planes_shows_nothing() -> None:
    what = look()
    assert signs_of(replace(what, spreads=what.spreads[:, :0]), 0.02) is None
    assert signs_of(replace(what, tails=what.tails[:, :0]), 0.02) is None
    assert signs_of(what.rows(slice(0)), 0.02) is None


def test_a_fit_made_with_fewer_signs_does_without_the_last() -> None:
    signs, sigma = readings(100)
    fit = fit_noise(signs[:, :8], sigma)
    assert fit.sigma(signs[0]) == fit.sigma(signs[0, :8])


def test_it_survives_a_file() -> None:
    fit = fit_noise(*readings(20))
    assert NoiseFit.from_dict(fit.to_dict()) == fit


def test_one_of_another_version_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no 'least'; make the model again.*pointmend release"):
        NoiseFit.from_dict({"curves": []})
