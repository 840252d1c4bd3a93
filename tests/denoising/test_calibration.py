import numpy as np
import pytest

from pointmend.denoising.calibration import Calibration, Curve, fit_calibration
from pointmend.denoising.noise_fit import NoiseFit
from pointmend.errors import InputError


def test_a_curve_is_met_at_its_entries_and_interpolated_between() -> None:
    table = Calibration((Curve(0.1, reading=(1.0, 2.0), level=(2.0, 3.0)),))
    assert table.sigma(rms=0.1, spacing=0.1) == pytest.approx(0.2)
    assert table.sigma(rms=0.15, spacing=0.1) == pytest.approx(0.25)
    assert table.sigma(rms=0.05, spacing=0.1) == pytest.approx(0.1)
    assert table.sigma(rms=0.4, spacing=0.1) == pytest.approx(0.6)
    assert table.sigma(rms=0.4, spacing=0.0) == 0.4


def test_between_two_spacings_both_curves_have_a_say() -> None:
    near, far = Curve(0.01, (1.0,), (1.0,)), Curve(0.04, (1.0,), (2.0,))
    table = Calibration((near, far))
    assert table.sigma(0.02, 0.02) == pytest.approx(1.5 * 0.02)
    assert table.sigma(0.005, 0.005) == pytest.approx(0.005)
    assert table.sigma(0.1, 0.1) == pytest.approx(0.2)


def test_the_map_is_monotone() -> None:
    table = Calibration(
        (Curve(0.5, (0.2, 1.0, 1.5), (0.5, 1.1, 4.0)), Curve(2.0, (0.1, 1.2), (0.7, 0.9)))
    )
    sigmas = [table.sigma(r, 1.0) for r in np.linspace(0, 3, 200)]
    assert np.all(np.diff(sigmas) > 0)


def test_fitting_recovers_a_known_map_at_every_spacing() -> None:
    rng = np.random.default_rng(0)
    spacing = np.exp(rng.uniform(np.log(0.005), np.log(0.03), 3000))
    level = rng.uniform(0.1, 3.0, 3000)
    # Readings fall short, the more so the denser the cloud and the wider the noise.
    short = 1.0 + 0.2 * level * (0.03 / spacing) ** 0.2
    table = fit_calibration(spacing * level / short, spacing, spacing * level)
    assert len(table.curves) == 3
    for gap in (0.007, 0.013, 0.025):
        for wanted in (0.3, 1.0, 2.5):
            read = wanted / (1.0 + 0.2 * wanted * (0.03 / gap) ** 0.2)
            assert table.sigma(gap * read, gap) == pytest.approx(gap * wanted, rel=0.05)
    assert Calibration.from_dict(table.to_dict()) == table


def test_wide_noise_is_right_on_average_although_its_readings_hardly_rise() -> None:
    rng = np.random.default_rng(1)
    level = np.repeat([0.5, 1.0, 1.5, 2.0], 100)
    reading = np.minimum(level, 1.0 + 0.1 * (level - 1.0)) + 0.03 * rng.standard_normal(400)
    table = fit_calibration(reading, np.ones(400), level)
    for wanted in (1.5, 2.0):
        read = [table.sigma(r, 1.0) for r in reading[level == wanted]]
        assert np.mean(read) == pytest.approx(wanted, rel=0.06)


def test_few_readings_make_one_curve() -> None:
    table = fit_calibration([0.01, 0.02], [0.02, 0.01], [0.01, 0.03])
    assert len(table.curves) == 1


@pytest.mark.parametrize(
    ("reading", "level"), [((), ()), ((1.0, 0.5), (1.0, 2.0)), ((1.0,), (1.0, 2.0))]
)
def test_a_curve_that_is_not_monotone_is_refused(
    reading: tuple[float, ...], level: tuple[float, ...]
) -> None:
    with pytest.raises(InputError, match="two increasing columns"):
        Curve(1.0, reading, level)


@pytest.mark.parametrize("spacings", [(), (0.02, 0.01), (0.01, 0.01), (0.0,)])
def test_curves_must_be_ordered_by_spacing(spacings: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="increasing spacing"):
        Calibration(tuple(Curve(spacing, (1.0,), (1.0,)) for spacing in spacings))


def test_a_fit_is_kept_beside_the_curves() -> None:
    fit = NoiseFit((0.0,) * 3, (1.0,) * 3, (0.1,) * 10)
    table = Calibration((Curve(0.1, (1.0,), (2.0,)),), fit)
    assert Calibration.from_dict(table.to_dict()) == table


def test_a_calibration_of_an_older_version_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no 'curves'; make the model again.*pointmend release"):
        Calibration.from_dict({"reading": [1.0], "level": [1.0]})
