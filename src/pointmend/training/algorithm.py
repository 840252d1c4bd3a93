"""Training: Algorithm 1, two-stage sampling and the masked loss of a batch of patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.diffusion.steps import generative_steps, reverse_steps
from pointmend.geometry.local import LocalGeometry
from pointmend.network.score import ScoreNetwork

from .config import TrainingConfig
from .patches import TrainingPatch, draw_patch
from .shapes import Shape

Float64 = NDArray[np.float64]

# The loss is around 1e-4 in the network's frame; scaled, it is readable and far from underflow.
LOSS_SCALE = 1e4


@dataclass(frozen=True)
class Batch:
    """
    Patches of one step, prepared ahead of time.

    Attributes
    ----------
    patches : B patches of N points.
    deltas : Delta of each (Alg. 1, line 8).
    generators : the patches' own sources of randomness, for what the step still has to draw.
    cloud : the noisy patches as the network sees them, M = B N points.
    truth : (B, N, 3) S(x^t).
    mask : (B K_p,) rows of the masked points.
    """

    patches: Sequence[TrainingPatch]
    deltas: Sequence[int]
    generators: Sequence[np.random.Generator]
    cloud: LocalGeometry
    truth: Float64
    mask: Tensor


@dataclass(frozen=True)
class Losses:
    """Both stages' losses (to be minimised as their sum) and mean squared errors x 1e5."""

    total: Tensor
    first_error: float
    second_error: float


def prepare_batch(
    shapes: Sequence[Shape],
    network: ScoreNetwork,
    config: TrainingConfig,
    generators: Sequence[np.random.Generator],
) -> Batch:
    """
    Draw a batch and do all of stage 1 that needs no weights (Alg. 1, lines 1-5).

    Parameters
    ----------
    generators : one source of randomness per patch, so that a patch does not depend on how the
        batch is shared between processes.
    """
    patches = [draw_patch(shapes, config, rng) for rng in generators]
    deltas = [int(rng.integers(1, patch.t + 1)) for rng, patch in zip(generators, patches)]
    truth = np.stack([patch.ground_truth(patch.noisy, config) for patch in patches])
    noisy = np.concatenate([patch.noisy for patch in patches])
    points = len(patches[0].noisy)
    rows = np.arange(len(patches))[:, None] * points + np.arange(min(config.mask_points, points))
    return Batch(
        patches=patches,
        deltas=deltas,
        generators=generators,
        cloud=network.look(torch.from_numpy(noisy).float(), points),
        truth=truth,
        mask=torch.from_numpy(rows.reshape(-1)),
    )


def batch_losses(network: ScoreNetwork, batch: Batch, config: TrainingConfig) -> Losses:
    """
    Stages 1 and 2 and their losses (Alg. 1, lines 6-14): the objective of Eq. 8 as Eq. 9 has it.

    The scores that move the points to stage 2 carry no gradient: stage 2 learns from where
    stage 1 leads, it does not teach it.
    """
    mask, cloud = batch.mask, batch.cloud
    points = cloud.patch_points
    times = np.array([patch.t for patch in batch.patches])
    next_times = times - np.array(batch.deltas)

    # Stage 1 (lines 6-7): relative time t / t = 1, both clouds the same.
    near = network.needed(cloud, mask)
    initial = network.features(cloud, near)
    one = torch.ones(len(cloud.positions))
    scores = network.scores(cloud, initial, initial, cloud.positions, one, mask)
    truth = torch.from_numpy(batch.truth.reshape(-1, 3)[mask.numpy()]).float()
    first_weights = _weights(TRAINING_SCHEDULE.sigma_bar[times], config, len(mask))
    first = _masked_loss(scores, truth, first_weights)

    # Stage 2 (lines 8-11): predictions move the masked points, the truth moves the others.
    moved = _stage_two_positions(batch, scores.detach().double().numpy(), next_times, config)
    later = network.look(torch.from_numpy(moved.reshape(-1, 3)).float(), points)
    later_near = network.needed(later, mask)
    current = network.features(later, later_near)
    # Some of them were no one's neighbours in stage 1: their E(x^T) is still to be made.
    new = later_near[torch.isin(later_near, near, invert=True)]
    initial = initial + network.features(cloud, new)
    relative = torch.from_numpy(np.repeat(next_times / times, points)).float()
    later_scores = network.scores(later, current, initial, cloud.positions, relative, mask)
    masked = moved.reshape(len(batch.patches), points, 3)[:, : len(mask) // len(batch.patches)]
    later_truth = torch.from_numpy(
        np.concatenate(
            [
                patch.later(int(t), config).ground_truth(x, config)
                for patch, t, x in zip(batch.patches, next_times, masked)
            ]
        )
    ).float()
    # At t - Delta = 0 the weight of Eq. 9 has a pole; the least time trained bounds it.
    floor = TRAINING_SCHEDULE.sigma_bar[config.t_min]
    sigmas = np.maximum(TRAINING_SCHEDULE.sigma_bar[next_times], floor)
    second = _masked_loss(later_scores, later_truth, _weights(sigmas, config, len(mask)))

    return Losses(
        total=first + second,
        first_error=_squared_error(scores, truth),
        second_error=_squared_error(later_scores, later_truth),
    )


def _stage_two_positions(
    batch: Batch, scores: Float64, next_times: NDArray[np.int64], config: TrainingConfig
) -> Float64:
    """x^{t-Delta} = x^t + c (M s + not M S(x^t)) (Alg. 1, line 9): (B, N, 3)."""
    arrange = reverse_steps if config.diffusion == "preserving" else generative_steps
    moved = np.empty_like(batch.truth)
    per_patch = scores.reshape(len(batch.patches), -1, 3)
    for number, patch in enumerate(batch.patches):
        way = batch.truth[number].copy()
        way[: per_patch.shape[1]] = per_patch[number]
        (step,) = arrange(TRAINING_SCHEDULE, (patch.t, int(next_times[number])))
        moved[number] = step.advance(patch.noisy, way, batch.generators[number])
    return moved


def _weights(sigmas: Float64, config: TrainingConfig, masked: int) -> Tensor:
    """((1 - lambda) / sigma_bar + lambda) of Eq. 9 for every masked point: (B,) -> (B K_p, 1)."""
    weights = (1.0 - config.loss_lambda) / sigmas + config.loss_lambda
    return torch.from_numpy(np.repeat(weights, masked // len(weights))[:, None]).float()


def _masked_loss(scores: Tensor, truth: Tensor, weights: Tensor) -> Tensor:
    """E ||w (s - S)||^2 over the masked points (Eq. 9): all (Q, 3), weights (Q, 1)."""
    return LOSS_SCALE * (weights * (scores - truth)).square().sum(dim=1).mean()


def _squared_error(scores: Tensor, truth: Tensor) -> float:
    """Unweighted mean squared error x 1e5, the readable number."""
    return 1e5 * float((scores.detach() - truth).square().sum(dim=1).mean())
