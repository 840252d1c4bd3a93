import numpy as np
import pytest

from pointmend.errors import InputError
from pointmend.evaluation.contract import Promise, check_denoiser
from pointmend.geometry.procedural import box
from pointmend.methods.method import Task
from pointmend.methods.trivial import Identity, Oracle


def test_doing_nothing_keeps_every_promise() -> None:
    check_denoiser(lambda points: Identity()(Task(points)), Promise(clean=0.0))


def test_the_oracle_puts_every_point_on_the_surface() -> None:
    mesh = box(4)
    points = np.random.default_rng(0).random((200, 3)) * 3.0 - 1.5
    projected = Oracle()(Task(points, surface=mesh))
    half = np.abs(mesh.vertices).max(axis=0)
    assert np.allclose((np.abs(projected) / half).max(axis=1), 1.0)
    outside = np.all(np.abs(points) > half, axis=1)
    assert np.allclose(projected[outside], np.clip(points[outside], -half, half))


def test_the_oracle_cannot_do_without_the_surface() -> None:
    with pytest.raises(InputError, match="needs the true surface"):
        Oracle()(Task(np.zeros((3, 3))))
    assert Oracle()(Task(np.zeros((0, 3)), surface=box(2))).shape == (0, 3)
