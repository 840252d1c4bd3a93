"""Denoising: the public denoiser; any points in, the same points cleaner out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pointmend.diffusion.arrangement import search_tau
from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.errors import InputError
from pointmend.geometry.frames import KNOWN_SPACING, CloudFrame
from pointmend.geometry.ordering import distinct_points, valid_rows
from pointmend.geometry.tiles import split_evenly, tiles_for
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, load_model

from .algorithm import Progress, Sampler
from .calibration import Calibration
from .gain import nothing_to_gain
from .options import SamplerOptions
from .settings import Settings
from .store import MemoryStore, sample_stride
from .survey import Survey, look_at_whole, survey_store
from .tiled import denoise_store

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
    shares : (N,) the share of its way each point was allowed, from 0 (there was nothing to gain)
        to 1.
    outlier : (N,) True for points flagged as outliers, which took no part.
    """

    points: Float64
    displacement: Float64
    sigma: float
    spacing: float
    schedule: tuple[float, ...]
    invalid: NDArray[np.bool_]
    in_trained_range: bool
    shares: Float64
    outlier: NDArray[np.bool_]

    @classmethod
    def untouched(cls, points: Float64, invalid: NDArray[np.bool_]) -> Result:
        """A cloud (N, 3) without a point to work on."""
        nothing = np.zeros(len(points))
        nobody = nothing > 0.0
        return cls(points, nothing, 0.0, 0.0, (0.0,), invalid, False, nothing.copy(), nobody)

    @property
    def nothing_to_gain(self) -> bool:
        """Whether the cloud is so clean that no point was moved."""
        return not self.shares.any()


@dataclass(frozen=True)
class NoiseEstimate:
    """
    What a cloud looks like before anything is done to it.

    Attributes
    ----------
    sigma : noise level, in input units.
    spacing : typical distance between neighbouring points, in input units.
    in_trained_range : whether the network has learned on such noise and spacing.
    nothing_to_gain : whether the cloud is so clean that denoising leaves it as it is.
    """

    sigma: float
    spacing: float
    in_trained_range: bool
    nothing_to_gain: bool


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
        try:
            network = network.to(chosen)
        except (AssertionError, RuntimeError, NotImplementedError) as error:
            # What torch raises when a device it knows by name is not there.
            reason = str(error).splitlines()[0]
            raise InputError(f"device {device!r} cannot be used here: {reason}") from error
        return cls(network, card, chosen, options or SamplerOptions())

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
        max_displacement: float | None = None,
        careful: bool = True,
        ignore: ArrayLike | None = None,
        outliers: float | None = None,
        spread: bool = False,
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
        max_displacement : no point goes farther, in input units; by default five times the noise.
        careful : leave points exactly where they are where there is nothing to gain.
        ignore : (N,) True for points that neither move nor pull others.
        outliers : treat points so too that lie this many times (3, say) farther from others than
            is usual among these.
        spread : let points slide along the surface, too, until they lie evenly on it.
        """
        settings = Settings(
            steps, eta, sigma, strength, seed, max_displacement, careful, outliers, spread
        )
        return self.run(points, settings, progress, ignore)

    def run(
        self,
        points: Points,
        settings: Settings,
        progress: Callable[[Progress], None] | None = None,
        ignore: ArrayLike | None = None,
    ) -> Result:
        """Denoise a cloud (N, 3) as `denoise` does, with all settings in one."""
        positions = as_points(points)
        taking_part = valid_rows(positions)
        invalid = np.logical_not(taking_part)
        if ignore is not None:
            taking_part &= np.logical_not(_as_mask(ignore, len(positions)))
        if not taking_part.any():
            return Result.untouched(positions, invalid)
        noisy = positions[taking_part]
        store = self._store(noisy)
        if len(store.tiling) > 1:
            survey = survey_store(self.sampler, store, _sample(noisy))
        else:
            survey = look_at_whole(distinct_points(noisy)[0])

        row_of = np.flatnonzero(taking_part)

        def report(state: Progress) -> None:
            if progress is None:
                return
            if state.positions is not None and state.regions > 1:
                state = replace(state, rows=row_of[store.rows(state.region)])
            elif state.positions is not None:
                whole = positions.copy()
                whole[taking_part] = state.positions
                state = replace(state, positions=whole)
            progress(state)

        denoise_store(self.sampler, store, survey, settings, report)
        found = store.found
        moved = positions.copy()
        moved[taking_part] += found.shift
        displacement, shares = np.zeros(len(positions)), np.zeros(len(positions))
        displacement[taking_part] = np.linalg.norm(found.shift, axis=1)
        shares[taking_part] = found.shares
        outlier = np.zeros(len(positions), dtype=bool)
        outlier[taking_part] = found.outlier
        level = float(np.median(found.sigma[~found.outlier])) if not found.outlier.all() else 0.0
        return Result(
            points=moved,
            displacement=displacement,
            sigma=level,
            spacing=survey.frame.spacing,
            schedule=found.times,
            invalid=invalid,
            in_trained_range=_is_known(survey.frame, level / survey.frame.scale),
            shares=shares,
            outlier=outlier,
        )

    def estimate_noise(self, points: Points) -> NoiseEstimate:
        """
        Estimate the noise level of a cloud without denoising it.

        Parameters
        ----------
        points : (N, 3) array-like.
        """
        positions = as_points(points)
        noisy = positions[valid_rows(positions)]
        if len(noisy) == 0:
            return NoiseEstimate(0.0, 0.0, in_trained_range=False, nothing_to_gain=True)
        store = self._store(noisy)
        return noise_of(survey_store(self.sampler, store, _sample(noisy)))

    def _store(self, points: Float64) -> MemoryStore:
        """The points (N, 3), finite, divided into tiles."""
        tiles = tiles_for(len(points), self.options.tile_points)
        return MemoryStore(points, split_evenly(_sample(points), tiles))


def noise_of(survey: Survey) -> NoiseEstimate:
    """What a survey with measured noise says, for the level of density most points have."""
    assert survey.sigma is not None
    assert survey.gain is not None
    sigma = survey.sigma[min(survey.sigma, key=abs)]
    known = _is_known(survey.frame, sigma / survey.frame.scale)
    clean = nothing_to_gain(survey.gain)
    return NoiseEstimate(sigma, survey.frame.spacing, in_trained_range=known, nothing_to_gain=clean)


def _sample(points: Float64) -> Float64:
    """Points (M, 3) that stand for a cloud (N, 3): every so many-th."""
    return points[:: sample_stride(len(points))]


def _as_mask(values: ArrayLike, count: int) -> NDArray[np.bool_]:
    mask = np.asarray(values)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        raise InputError(f"ignore must be {count} truth values, one per point")
    return mask


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
    if device.type == "meta":
        raise InputError("device 'meta' computes nothing; try auto, cpu or cuda")
    return device
