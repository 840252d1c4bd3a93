from pathlib import Path

import numpy as np

from pointmend import read
from pointmend.evaluation.example import COUNT, EXAMPLE, NOISE, true_surface, write_example
from pointmend.evaluation.metrics import distances_to_surface, surface_error


def test_shipped_example_is_the_one_we_know_how_to_make(tmp_path: Path) -> None:
    write_example(tmp_path / "again.ply")
    shipped, again = read(EXAMPLE), read(tmp_path / "again.ply")
    assert len(shipped) == COUNT
    np.testing.assert_allclose(shipped.positions, again.positions, atol=1e-6)
    assert list(shipped.attributes) == ["red", "green", "blue"]
    for name, values in shipped.attributes.items():
        assert values.dtype == np.uint8
        np.testing.assert_allclose(values, again.attributes[name].astype(float), atol=1)
    assert EXAMPLE.stat().st_size < 400_000


def test_example_has_the_noise_it_claims() -> None:
    # A flat surface sees one of the three axes: the RMS distance is the standard deviation.
    rms = surface_error(distances_to_surface(read(EXAMPLE).positions, true_surface())).rms
    assert abs(rms / NOISE - 1.0) < 0.05
