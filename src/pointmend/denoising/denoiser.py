"""The public denoiser: any points in, the same points cleaner out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pointmend.diffusion.arrangement import search_tau
from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.errors import InputError
from pointmend.geometry.frames import KNOWN_SPACING, CloudFrame, frame_cloud
from pointmend.geometry.ordering import distinct_points
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, load_model

from .algorithm import Progress, Sampler
from .calibration import Calibration
from .options import SamplerOptions

Float64 = NDArray[np.float64]
Points = ArrayLike | torch.Tensor


@dataclass(frozen=True)
class Result:
    """
    A denoised cloud.

    Attributes
    ----------
    points : (N, 3) float64, in the order and units of the input. Rows with NaN or infinity are
        returned as they came.
    displacement : (N,) how far each point moved.
    sigma : estimated (or given) noise level, in input units.
    spacing : typical distance between neighbouring points, in input units.
    schedule : the times the sampler visited, tau first.
    invalid : (N,) True for rows with NaN or infinity, which took no part.
    in_trained_range : whether the network has learned on such noise and spacing.
    """

    points: Float64
    displacement: Float64
    sigma: float
    spacing: float
    schedule: tuple[float, ...]
    invalid: NDArray[np.bool_]
    in_trained_range: bool


@dataclass(frozen=True)
class NoiseEstimate:
    """
    What a cloud looks like before anything is done to it.

    Attributes
    ----------
    sigma : noise level, in input units.
    spacing : typical distance between neighbouring points, in input units.
    in_trained_range : whether the network has learned on such noise and spacing.
    """

    sigma: float
    spacing: float
    in_trained_range: bool


@dataclass(frozen=True)
class Denoiser:
    """A score network with its calibration, ready to denoise clouds of any size and unit."""

    network: ScoreNetwork
    card: ModelCard
    device: torch.device
    options: SamplerOptions = field(default_factory=SamplerOptions)

    @classmethod
    def load(
        cls,
        model: str | Path = "default",
        device: str = "auto",
        options: SamplerOptions | None = None,
    ) -> Denoiser:
        """
        Load a model.

        Parameters
        ----------
        model : the name of shipped weights, or a path.
        device : "auto" (a GPU when there is one), "cpu", "cuda", ...
        options : how the sampler runs; the defaults are the ones we measured as best.
        """
        network, card = load_model(model)
        chosen = pick_device(device)
        return cls(network.to(chosen), card, chosen, options or SamplerOptions())

    @property
    def sampler(self) -> Sampler:
        """Algorithm 2 with this model's parts."""
        table = self.card.calibration
        calibration = Calibration.from_dict(table) if table is not None else None
        return Sampler(self.network, calibration, self.options, self.device)

    def denoise(
        self,
        points: Points,
        steps: int = 5,
        eta: float = 0.0,
        sigma: float | None = None,
        strength: float = 1.0,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
    ) -> Result:
        """
        Denoise a cloud.

        Parameters
        ----------
        points : (N, 3) array-like in any units and with any offset; it is not changed.
        steps : L, the length of the schedule.
        eta : fresh noise in every step, 0 (none) to 1 (DDPM's).
        sigma : the noise level in input units, when it is known.
        strength : share of the displacement to apply, 0 to 1.
        seed : of the fresh noise; nothing else is random.
        progress : called as the run goes on; an exception raised there cancels it.
        """
        positions = as_points(points)
        _check_settings(steps, eta, sigma, strength)
        valid = _finite_rows(positions)
        if not valid.any():
            nothing = np.zeros(len(positions))
            return Result(positions, nothing, 0.0, 0.0, (0.0,), np.logical_not(valid), False)
        # Points in one place are one point to the network, and move together.
        distinct, copies = distinct_points(positions[valid])
        frame = frame_cloud(distinct)
        noisy = frame.enter(distinct)

        def report(state: Progress) -> None:
            if progress is None:
                return
            if state.positions is None:
                progress(state)
                return
            whole = positions.copy()
            whole[valid] = frame.leave(state.positions)[copies]
            progress(Progress(state.done, state.total, state.step, state.steps, whole))

        outcome = self.sampler.run(
            noisy,
            spacing=frame.spacing / frame.scale,
            steps=steps,
            eta=eta,
            sigma=None if sigma is None else sigma / frame.scale,
            rng=np.random.default_rng(seed),
            report=report,
        )
        # The displacement is what is scaled back, so that large offsets lose nothing.
        shift = (outcome.positions - noisy) * (frame.scale * strength)
        moved = positions.copy()
        moved[valid] += shift[copies]
        displacement = np.zeros(len(positions))
        displacement[valid] = np.linalg.norm(shift, axis=1)[copies]
        return Result(
            points=moved,
            displacement=displacement,
            sigma=outcome.sigma * frame.scale,
            spacing=frame.spacing,
            schedule=outcome.times,
            invalid=np.logical_not(valid),
            in_trained_range=_is_known(frame, outcome.sigma),
        )

    def estimate_noise(self, points: Points) -> NoiseEstimate:
        """
        Estimate the noise level of a cloud without denoising it.

        Parameters
        ----------
        points : (N, 3) array-like.
        """
        positions = as_points(points)
        valid = _finite_rows(positions)
        if not valid.any():
            return NoiseEstimate(0.0, 0.0, in_trained_range=False)
        distinct, _ = distinct_points(positions[valid])
        frame = frame_cloud(distinct)
        sampler = self.sampler
        scores = sampler.first_scores(frame.enter(distinct))
        sigma = sampler.estimate_sigma(scores, frame.spacing / frame.scale)
        known = _is_known(frame, sigma)
        return NoiseEstimate(sigma * frame.scale, frame.spacing, in_trained_range=known)


def _finite_rows(positions: Float64) -> NDArray[np.bool_]:
    """(N,) True where all three coordinates are finite."""
    return np.asarray(np.isfinite(positions).all(axis=1))


def _is_known(frame: CloudFrame, sigma: float) -> bool:
    """Whether spacing and noise, in the network's frame, lie in what training has shown it."""
    low, high = KNOWN_SPACING
    below_last = search_tau(sigma, TRAINING_SCHEDULE) < TRAINING_SCHEDULE.steps
    return low <= frame.spacing / frame.scale <= high and below_last


def as_points(points: Any) -> Float64:
    """
    A float64 copy of array-like points.

    Parameters
    ----------
    points : (N, 3) lists, arrays or tensors; an empty list is an empty cloud.
    """
    if isinstance(points, torch.Tensor):
        points = points.detach().cpu().numpy()
    try:
        array = np.array(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"points must be numbers in rows of three: {error}") from error
    if array.size == 0 and array.ndim < 2:
        return array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"points must have shape (N, 3), not {array.shape}: pass x, y, z only")
    return array


def pick_device(name: str) -> torch.device:
    """The device to compute on: "auto" takes a GPU when there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"unknown device {name!r}; try auto, cpu or cuda") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("no CUDA device can be used here; try auto or cpu")
    return device


def _check_settings(steps: int, eta: float, sigma: float | None, strength: float) -> None:
    """Refuse settings that mean nothing."""
    if steps < 1:
        raise InputError(f"steps is {steps}; at least 1 is needed")
    if not 0.0 <= eta <= 1.0:
        raise InputError(f"eta is {eta}; it lies between 0 and 1")
    if not 0.0 <= strength <= 1.0:
        raise InputError(f"strength is {strength}; it lies between 0 and 1")
    if sigma is not None and not (np.isfinite(sigma) and sigma >= 0.0):
        raise InputError(f"sigma is {sigma}; a noise level is a number of at least 0")
