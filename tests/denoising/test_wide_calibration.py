"""Wide noise from scores and layers."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.denoising.wide_calibration import WideCalibration, fit_wide_calibration
from pointmend.errors import InputError

Floats = NDArray[np.float64]


def readings(shapes: int, seed: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    """Scores too short where shapes are flat, layers too thick where they are bent."""
    rng = np.random.default_rng(seed)
    spacing = rng.uniform(0.008, 0.03, shapes)
    sigma = spacing * rng.uniform(0.8, 3.0, shapes)
    bent = rng.uniform(0.0, 0.3, shapes)
    rms = sigma * (0.6 + bent) * (spacing / 0.01) ** 0.1
    layer = sigma * (0.8 + bent**2)
    return rms, layer, spacing, sigma


def test_noise_of_other_shapes_is_found() -> None:
    fit = fit_wide_calibration(*readings(300))
    rms, layer, spacing, sigma = readings(50, seed=1)
    found = [fit.sigma(*each) for each in zip(rms, layer, spacing)]
    assert np.abs(np.array(found) / sigma - 1.0).max() < 0.03


def test_a_few_odd_shapes_do_not_bend_it() -> None:
    rms, layer, spacing, sigma = readings(300)
    fit = fit_wide_calibration(rms, layer, spacing, sigma)
    odd = np.where(np.arange(300) % 20 == 0, 0.5, 1.0)
    bent = fit_wide_calibration(rms * odd, layer, spacing, sigma)
    rms, layer, spacing, sigma = readings(50, seed=1)
    expected = [fit.sigma(*each) for each in zip(rms, layer, spacing)]
    assert [bent.sigma(*each) for each in zip(rms, layer, spacing)] == pytest.approx(
        expected, rel=0.05
    )


def test_it_does_not_depend_on_the_unit_of_readings_beyond_those_known() -> None:
    fit = fit_wide_calibration(*readings(300))
    far = fit.sigma(10.0, 12.0, 1.0)
    assert fit.sigma(100.0, 120.0, 1.0) == pytest.approx(10.0 * far)


def test_one_reading_is_enough_and_right() -> None:
    fit = fit_wide_calibration([0.02], [0.025], [0.015], [0.03])
    assert fit.sigma(0.02, 0.025, 0.015) == pytest.approx(0.03)


def test_it_survives_a_file() -> None:
    fit = fit_wide_calibration(*readings(20))
    assert WideCalibration.from_dict(fit.to_dict()) == fit


def test_one_of_an_older_version_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no 'least'; make the model again.*pointmend release"):
        WideCalibration.from_dict({"curves": []})
