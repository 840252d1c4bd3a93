"""What all classical smoothers promise, and what they are for."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.evaluation.contract import Promise, check_denoiser
from pointmend.geometry.meshes import sample_surface
from pointmend.geometry.procedural import torus
from pointmend.geometry.triangles import points_to_mesh
from pointmend.methods.bilateral import BilateralSmoothing
from pointmend.methods.jet import JetSmoothing
from pointmend.methods.method import Method, Task
from pointmend.methods.mls import MovingLeastSquares
from pointmend.methods.wlop import Wlop

# WLOP draws a cloud in however clean it is: its radius does not look at the noise.
SMOOTHERS: dict[str, tuple[Method, Promise]] = {
    "jet": (JetSmoothing(), Promise(clean=0.05)),
    "bilateral": (BilateralSmoothing(), Promise(clean=0.25)),
    "mls": (MovingLeastSquares(), Promise(clean=0.05)),
    "wlop": (Wlop(iterations=6), Promise(clean=2.0)),
}


@pytest.mark.parametrize("name", SMOOTHERS)
def test_every_smoother_keeps_the_contract(name: str) -> None:
    method, promise = SMOOTHERS[name]
    check_denoiser(lambda points: method(Task(points)), promise)


@pytest.mark.parametrize("name", SMOOTHERS)
def test_every_smoother_brings_points_nearer_to_the_surface(name: str) -> None:
    mesh = torus(60, 30)
    clean, _ = sample_surface(mesh, 3000, np.random.default_rng(0))
    noisy = clean + 0.02 * np.random.default_rng(1).standard_normal(clean.shape)

    def rms(points: NDArray[np.float64]) -> float:
        return float(np.sqrt(points_to_mesh(points, mesh).squared.mean()))

    # At its default radius WLOP shrinks a tube that is only eight spacings wide.
    method = Wlop(spacings=3.0, iterations=6) if name == "wlop" else SMOOTHERS[name][0]
    assert rms(method(Task(noisy, level=0.02))) < 0.75 * rms(noisy)
