"""Bodies with relief: closed, as high and as long as they say, and never the same."""

import numpy as np
import pytest

from pointmend.geometry.meshes import unit_sphere, vertex_normals
from pointmend.geometry.procedural import round_block
from pointmend.geometry.relief import relief, relief_shape

from .closed import volume_if_closed

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_shape_is_closed_and_fills_the_unit_sphere(seed: int) -> None:
    mesh = relief_shape(np.random.default_rng(seed))
    centre, radius = unit_sphere(mesh.vertices)
    np.testing.assert_allclose(centre, 0.0, atol=1e-12)
    assert radius == pytest.approx(1.0)
    assert 0.2 < volume_if_closed(mesh) < 4.0 / 3.0 * np.pi


@pytest.mark.parametrize("seed", SEEDS)
def test_relief_goes_up_and_down_once_in_its_wavelength(seed: int) -> None:
    line = np.zeros((20_000, 3))
    line[:, 0] = np.linspace(0.0, 200.0, len(line))
    heights = relief(line, 1.0, np.random.default_rng(seed))
    assert np.abs(heights).max() <= 1.0
    assert heights.std() > 0.1
    # A plane wave seen along a line that it crosses at an angle looks longer, never shorter.
    power = np.abs(np.fft.rfft(heights - heights.mean())) ** 2
    per_length = np.fft.rfftfreq(len(line), 200.0 / len(line))
    assert power[per_length < 1.7].sum() > 0.9 * power.sum()


def test_shapes_differ() -> None:
    first, again, other = (relief_shape(np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.vertices, again.vertices)
    assert first.vertices.shape != other.vertices.shape


def test_vertex_normals_are_those_of_an_ellipsoid() -> None:
    half = np.array([1.0, 0.7, 0.5])
    mesh = round_block((40, 40, 40), half)
    true = mesh.vertices / half**2
    true /= np.linalg.norm(true, axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", vertex_normals(mesh), true).min() > 0.999
