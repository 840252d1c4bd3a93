import numpy as np
import pytest

from pointmend.denoising.calibration import Calibration, fit_calibration
from pointmend.errors import InputError


def test_the_table_is_met_at_its_entries_and_interpolated_between() -> None:
    table = Calibration(reading=(1.0, 2.0), level=(2.0, 3.0))
    assert table.sigma(rms=0.1, spacing=0.1) == pytest.approx(0.2)
    assert table.sigma(rms=0.15, spacing=0.1) == pytest.approx(0.25)
    assert table.sigma(rms=0.05, spacing=0.1) == pytest.approx(0.1)
    assert table.sigma(rms=0.4, spacing=0.1) == pytest.approx(0.6)
    assert table.sigma(rms=0.4, spacing=0.0) == 0.4


def test_the_map_is_monotone_and_scales_with_the_cloud() -> None:
    table = Calibration(reading=(0.2, 1.0, 1.5), level=(0.5, 1.1, 4.0))
    sigmas = [table.sigma(r, 1.0) for r in np.linspace(0, 3, 200)]
    assert np.all(np.diff(sigmas) > 0)
    assert table.sigma(50.0, 100.0) == pytest.approx(100 * table.sigma(0.5, 1.0))


def test_fitting_recovers_a_known_map() -> None:
    rng = np.random.default_rng(0)
    reading = rng.uniform(0.1, 3.0, 400)
    level = 1.3 * reading + 0.1 * reading**2 + 0.01 * rng.standard_normal(400)
    table = fit_calibration(reading.tolist(), level.tolist())
    for r in (0.3, 1.0, 2.5):
        assert table.sigma(r, 1.0) == pytest.approx(1.3 * r + 0.1 * r * r, rel=0.05)
    assert Calibration.from_dict(table.to_dict()) == table


@pytest.mark.parametrize(
    ("reading", "level"), [((), ()), ((1.0, 0.5), (1.0, 2.0)), ((1.0,), (1.0, 2.0))]
)
def test_a_table_that_is_not_monotone_is_refused(
    reading: tuple[float, ...], level: tuple[float, ...]
) -> None:
    with pytest.raises(InputError):
        Calibration(reading, level)
