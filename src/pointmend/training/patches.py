"""Training: noisy patches (lines 1-5 of Algorithm 1), and the ground truth to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from pointmend.diffusion.arrangement import search_tau
from pointmend.diffusion.schedule import TRAINING_SCHEDULE, diffuse, diffuse_generative
from pointmend.geometry.frames import patch_rotation

from .config import TrainingConfig
from .shapes import Shape

Float64 = NDArray[np.float64]

# Who is told the noise can learn from thinner walls: from four thirds of the noise on, where both
# sides together spread by a fifth more than one, which is more than what is told may be off.
MORE_NOISE_IF_TOLD = 1.5

# How far off (a standard deviation, relative) the noise is that is told, and how often none is told
# in the first stage, whose scores are what an estimate is made from.
TOLD_ERROR = 0.05
UNTOLD = 0.5

# How much more noise than there is may be told of shapes with thin walls, whose noise is read so:
# who has only been told the truth presses such walls together.
OVER_TOLD = 0.12


@dataclass(frozen=True)
class TrainingPatch:
    """
    A clean patch and its noisy version x^t, in the network's frame.

    Attributes
    ----------
    shape : where it was cut from.
    cloud : (N, 3) the clean patch x^0; the mask's points come first.
    noisy : (N, 3) x^t.
    t : the time drawn.
    centre, turn, scale : network frame = scale * turn (x - centre).
    """

    shape: Shape
    clean: Float64
    noisy: Float64
    t: int
    centre: Float64
    turn: Float64
    scale: float

    @property
    def spacing(self) -> float:
        """The side of the square that each clean point has for itself."""
        radius = float(np.linalg.norm(self.clean[-1] - self.clean[0]))
        return radius * float(np.sqrt(np.pi / len(self.clean)))

    def ground_truth(self, x: Float64, config: TrainingConfig) -> Float64:
        """
        S(x) of some points of the patch (Eq. 14, or the exact projection).

        Parameters
        ----------
        x : (Q, 3) in the network's frame.

        Returns
        -------
        (Q, 3)
        """
        if config.target == "nearest":
            return self._way_to_nearest(x)
        return self.way_and_normal(x, config)[0]

    def way_and_normal(self, x: Float64, config: TrainingConfig) -> tuple[Float64, Float64]:
        """The exact projection of points (Q, 3), and the surface's normals there: (Q, 3) each."""
        in_shape = x @ self.turn / self.scale + self.centre
        way, normal = self.shape.surface.way_from(in_shape)
        result: Float64 = self.scale * way @ self.turn.T
        normal = normal @ self.turn.T
        if config.tangential > 0.0:
            nearest = self._way_to_nearest(x)
            along = np.einsum("ij,ij->i", nearest, normal)[:, None] * normal
            result = result + config.tangential * (nearest - along)
        return result, normal

    def later(self, t: int, config: TrainingConfig) -> TrainingPatch:
        """The patch its ground truth refers to at time t: the same, but for DDPM's scaling."""
        if config.diffusion == "preserving":
            return self
        alpha_bar = TRAINING_SCHEDULE.alpha_bar
        grown = float(np.sqrt(alpha_bar[t] / alpha_bar[self.t]))
        return replace(self, clean=grown * self.clean, scale=grown * self.scale, t=t)

    def told_noise(self, stages: int, rng: np.random.Generator) -> Float64:
        """
        What a network is told of the noise in each of its stages: (K,), 0 for nothing.

        Later stages know what the scores of the first have led to. Where walls are too thin for the
        noise to go without being told, it always is. Of thin walls more is told than there is, as
        an estimate would.
        """
        sigma = float(TRAINING_SCHEDULE.sigma_bar[self.t])
        error = TOLD_ERROR * rng.standard_normal()
        if np.isfinite(self.shape.most_noise):
            error += OVER_TOLD * abs(rng.standard_normal())
        told = np.full(stages, sigma * np.exp(error))
        if rng.random() < UNTOLD and sigma <= self.scale * self.shape.most_noise:
            told[0] = 0.0
        return told

    def _way_to_nearest(self, x: Float64) -> Float64:
        """NN(x, x^0) - x (Eq. 14): (Q, 3) -> (Q, 3)."""
        _, index = cKDTree(self.clean).query(x)
        way: Float64 = self.clean[index] - x
        return way


def draw_patch(
    shapes: Sequence[Shape], config: TrainingConfig, rng: np.random.Generator
) -> TrainingPatch:
    """Lines 1-5 of Algorithm 1: a random patch, its mask (its first points), and its noise."""
    shape = shapes[int(rng.integers(len(shapes)))]
    which = int(rng.integers(len(shape.clouds)))
    cloud, tree = shape.clouds[which], shape.trees[which]
    centre = cloud[rng.integers(len(cloud))]
    _, index = tree.query(centre, k=min(config.patch_points, len(cloud)))
    scale = float(rng.uniform(*config.scale))
    turn = Rotation.random(random_state=rng).as_matrix()
    clean = scale * (cloud[index] - centre) @ turn.T
    most_noise = shape.most_noise * (MORE_NOISE_IF_TOLD if config.network.told_noise else 1.0)
    last = search_tau(min(scale * most_noise, 1.0), TRAINING_SCHEDULE)
    t = int(rng.integers(min(config.t_min, last), last + 1))
    if config.diffusion == "preserving":
        noisy = diffuse(clean, t, TRAINING_SCHEDULE, rng)
    else:
        noisy = diffuse_generative(clean, t, TRAINING_SCHEDULE, rng)
        shrunk = float(np.sqrt(TRAINING_SCHEDULE.alpha_bar[t]))
        clean, scale = shrunk * clean, shrunk * scale
    if config.network.frame == "patch":
        upright = patch_rotation(noisy, rng)
        clean, noisy, turn = clean @ upright.T, noisy @ upright.T, upright @ turn
    return TrainingPatch(shape, clean, noisy, t, centre, turn, scale)
