"""Training: Algorithm 1, sampling in stages and the masked loss of a batch of patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointmend.denoising.amends import Amends, share_in
from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.diffusion.steps import generative_steps, reverse_steps
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import neighbourhood_sum
from pointmend.geometry.symmetric import eigenvalues
from pointmend.network.score import ScoreNetwork

from .config import TrainingConfig
from .patches import TrainingPatch, draw_patch
from .shapes import Shape

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# The loss is around 1e-4 in the network's frame; scaled, it is readable and far from underflow.
LOSS_SCALE = 1e4

# Noise in spacings from which on nothing is anchored; one spacing less, and all is.
ANCHORED_UP_TO = 1.5


@dataclass(frozen=True)
class Batch:
    """
    Patches of one step, prepared ahead of time.

    Attributes
    ----------
    patches : B patches of N points.
    times : (B, K) t of every patch in each of the K stages, descending.
    told : (B, K) the noise that is told in each stage, 0 for none.
    generators : the patches' own sources of randomness, for what the step still has to draw.
    cloud : the noisy patches as the network sees them, M = B N points.
    truth : (B, N, 3) S(x^t).
    mask : (B K_p,) rows of the masked points.
    emphasis : (B K_p,) how much each of them counts.
    """

    patches: Sequence[TrainingPatch]
    times: Int64
    told: Float64
    generators: Sequence[np.random.Generator]
    cloud: LocalGeometry
    truth: Float64
    mask: Tensor
    emphasis: Tensor


@dataclass(frozen=True)
class Losses:
    """The sum of all stages' losses, and mean squared errors x 1e5 of the first and the last."""

    total: Tensor
    first_error: float
    last_error: float


def prepare_batch(
    shapes: Sequence[Shape],
    network: ScoreNetwork,
    config: TrainingConfig,
    generators: Sequence[np.random.Generator],
) -> Batch:
    """
    Draw a batch and do all of stage 1 that needs no weights (Alg. 1, lines 1-5 and 8).

    Parameters
    ----------
    generators : one source of randomness per patch, so that a patch does not depend on how the
        batch is shared between processes.
    """
    patches = [draw_patch(shapes, config, rng) for rng in generators]
    times = [stage_times(patch.t, config.stages, rng) for rng, patch in zip(generators, patches)]
    told = np.zeros((len(patches), config.stages))
    if config.network.told_noise:
        told = np.stack([p.told_noise(config.stages, r) for r, p in zip(generators, patches)])
    noisy = np.stack([patch.noisy for patch in patches])
    cloud, mask = _look(network, noisy), _rows_of(noisy, 0, config.mask_points)
    emphasis = torch.ones(len(mask))
    if config.detail > 0.0:
        aims = [patch.way_and_normal(patch.noisy, config) for patch in patches]
        truth, normals = (np.stack(each) for each in zip(*aims))
        bent = bending(torch.from_numpy(normals.reshape(-1, 3)), cloud.neighbours[mask])
        emphasis = emphasis + config.detail * bent
    else:
        truth = np.stack([patch.ground_truth(patch.noisy, config) for patch in patches])
    return Batch(
        patches=patches,
        times=np.stack(times),
        told=told,
        generators=generators,
        cloud=cloud,
        truth=truth,
        mask=mask,
        emphasis=emphasis,
    )


def bending(normals: Tensor, neighbours: Tensor) -> Tensor:
    """
    How much the surface bends around points: 0 on a plane, 0.75 on an edge, 1 if all ways alike.

    One less the largest eigenvalue of the mean of n n^T, which does not know the two sides of a
    thin wall from each other.

    Parameters
    ----------
    normals : (M, 3) float64, of the surface where each point belongs.
    neighbours : (Q, K) rows of the points around each.

    Returns
    -------
    (Q,) float32
    """
    x, y, z = normals.unbind(1)
    products = torch.stack([x * x, x * y, x * z, y * y, y * z, z * z], dim=1)
    mean = neighbourhood_sum(products, neighbours.contiguous()).t() / neighbours.shape[1]
    return (1.5 * (1.0 - eigenvalues(mean.contiguous())[2])).clamp(0.0, 1.0).float()


def stage_times(t: int, stages: int, rng: np.random.Generator) -> Int64:
    """
    The times of a patch in its K stages, (K,), descending from t (Alg. 1, line 8).

    For two stages t and t - Delta, Delta uniform in 1..t. For more, one time in each of K - 1
    equal parts of 0..t - 1, so that no two stages are much the same.
    """
    parts = np.linspace(t, 0, stages)
    drawn = np.floor(rng.uniform(parts[1:], parts[:-1])).astype(np.int64)
    return np.concatenate([[t], drawn])


def batch_losses(network: ScoreNetwork, batch: Batch, config: TrainingConfig) -> Losses:
    """
    All stages and their losses (Alg. 1, lines 6-14): the objective of Eq. 8 as Eq. 9 has it.

    The scores that move points to the next stage carry no gradient: a stage learns from where the
    one before leads, it does not teach it.
    """
    mask, cloud = batch.mask, batch.cloud
    x, truth = np.stack([patch.noisy for patch in batch.patches]), batch.truth
    start, foot = x, x + truth
    around = _rows_of(x, config.mask_points, config.followed_points)
    # E(x^T) of the points learned from, and of those that only lead on to the next stage.
    learned, led = FeatureTable(network, cloud), FeatureTable(network, cloud)
    total = torch.zeros(())
    errors = []
    spreads = network.spreads(cloud)
    for stage in range(config.stages):
        relative, noise = batch.times[:, stage] / batch.times[:, 0], batch.told[:, stage]
        time = _of_points(relative, cloud.patch_points)
        told = network.compared(spreads, _of_points(noise, cloud.patch_points))
        back = (start - x).reshape(-1, 3)
        ways = network.ways(cloud, torch.from_numpy(back)) if stage > 0 else None
        scores = _stage_scores(network, cloud, learned, time, told, ways, mask, stage)
        wanted = torch.from_numpy(truth.reshape(-1, 3)[mask.numpy()]).float()
        weights = _weights(batch, stage, config)
        total = total + _masked_loss(scores, wanted, weights, batch.emphasis)
        errors.append(_squared_error(scores, wanted))
        if stage == config.stages - 1:
            break
        # Line 9: scores move the central points, the truth moves the others.
        way = truth.copy()
        way.reshape(-1, 3)[mask.numpy()] = scores.detach().double().numpy()
        if len(around) > 0:
            with torch.no_grad():
                scores = _stage_scores(network, cloud, led, time, told, ways, around, stage)
            way.reshape(-1, 3)[around.numpy()] = scores.double().numpy()
        if config.amends > 0.0 and stage > 0:
            led_rows = torch.cat([mask, around])
            owed = Amends(back, 1.0).around(cloud.neighbours[led_rows])
            way.reshape(-1, 3)[led_rows.numpy()] += _shares(batch, led_rows, config) * owed
        moved = _advanced(batch, stage, x, way, config)
        truth = _later_truth(batch, stage + 1, moved, foot - moved, config)
        x, cloud = moved, _look(network, moved)
    return Losses(total, errors[0], errors[-1])


class FeatureTable:
    """E of one cloud, made for its points when they are first asked for."""

    def __init__(self, network: ScoreNetwork, cloud: LocalGeometry) -> None:
        self.network, self.cloud = network, cloud
        self.features = torch.zeros(len(cloud.positions), network.config.channels)
        self._known = torch.zeros(len(cloud.positions), dtype=torch.bool)

    def of(self, rows: Tensor) -> Tensor:
        """(M, channels) features that hold for these rows (U,)."""
        missing = rows[~self._known[rows]]
        if len(missing) > 0:
            self.features = self.features + self.network.features(self.cloud, missing)
            self._known[missing] = True
        return self.features


def _stage_scores(
    network: ScoreNetwork,
    cloud: LocalGeometry,
    initial: FeatureTable,
    time: Tensor,
    told: Tensor | None,
    ways: Tensor | None,
    at: Tensor,
    stage: int,
) -> Tensor:
    """s(x^t | x^T) (Q, 3) at some rows (Q,): lines 6-7 in stage 0, lines 10-11 in later ones."""
    near = network.needed(cloud, at)
    start = initial.of(near)
    current = start if stage == 0 else network.features(cloud, near)
    return network.scores(cloud, current, start, initial.cloud.positions, time, at, told, ways)


def _shares(batch: Batch, rows: Tensor, config: TrainingConfig) -> Float64:
    """The share of what some points (Q,) are owed that is given back in their noise: (Q, 1)."""
    sigma = TRAINING_SCHEDULE.sigma_bar[batch.times[:, 0]]
    shares = np.array([share_in(float(each), config.amends) for each in sigma])
    return np.asarray(shares[rows.numpy() // batch.cloud.patch_points, None])


def _of_points(values: Float64, patch_points: int) -> Tensor:
    """Values of patches (B,) as those of all their points: (B N,)."""
    return torch.from_numpy(np.repeat(values, patch_points)).float()


def _rows_of(patches: Float64, first: int, end: int) -> Tensor:
    """Rows of the points that are first-nearest to end-nearest in their patches (B, N, 3)."""
    count, points = patches.shape[:2]
    rows = np.arange(count)[:, None] * points + np.arange(min(first, points), min(end, points))
    return torch.from_numpy(rows.reshape(-1))


def _look(network: ScoreNetwork, x: Float64) -> LocalGeometry:
    """Patches (B, N, 3) as the network sees them."""
    return network.look(torch.from_numpy(x.reshape(-1, 3)).float(), x.shape[1])


def _advanced(
    batch: Batch, stage: int, x: Float64, way: Float64, config: TrainingConfig
) -> Float64:
    """x^{t-Delta} = x^t + c (M s + not M S(x^t)) (Alg. 1, line 9): all (B, N, 3)."""
    arrange = reverse_steps if config.diffusion == "preserving" else generative_steps
    moved = np.empty_like(x)
    for number, times in enumerate(batch.times):
        (step,) = arrange(TRAINING_SCHEDULE, (int(times[stage]), int(times[stage + 1])))
        moved[number] = step.advance(x[number], way[number], batch.generators[number])
    return moved


def _later_truth(
    batch: Batch, stage: int, x: Float64, first: Float64, config: TrainingConfig
) -> Float64:
    """
    S(x) of patches that have moved, all (B, N, 3): looked up for the masked points.

    Parameters
    ----------
    first : from here to where S led in the beginning, which is S still for those that followed it.
    """
    truth = first.copy()
    masked = len(batch.mask) // len(x)
    for number, (patch, t) in enumerate(zip(batch.patches, batch.times[:, stage])):
        anchor = anchor_share(patch) if config.anchored else 0.0
        if anchor < 1.0:
            later = patch.later(int(t), config)
            nearest = later.ground_truth(x[number, :masked], config)
            truth[number, :masked] = anchor * first[number, :masked] + (1.0 - anchor) * nearest
    return truth


def anchor_share(patch: TrainingPatch) -> float:
    """
    How far later stages aim at where S led in the beginning: 0 (not at all) to 1.

    Where points lie far apart against the noise, each is missed where it slid away from; where they
    lie close, others fill its place and what counts is that it comes near to any surface.
    """
    sigma = float(TRAINING_SCHEDULE.sigma_bar[patch.t])
    return float(np.clip(ANCHORED_UP_TO - sigma / patch.spacing, 0.0, 1.0))


def _weights(batch: Batch, stage: int, config: TrainingConfig) -> Tensor:
    """((1 - lambda) / sigma_bar + lambda) of Eq. 9 for every masked point: (B K_p, 1)."""
    # At time 0 it has a pole; the least time trained bounds it.
    times = np.maximum(batch.times[:, stage], config.t_min)
    weights = (1.0 - config.loss_lambda) / TRAINING_SCHEDULE.sigma_bar[times] + config.loss_lambda
    return torch.from_numpy(np.repeat(weights, len(batch.mask) // len(weights))[:, None]).float()


def _masked_loss(scores: Tensor, truth: Tensor, weights: Tensor, emphasis: Tensor) -> Tensor:
    """
    E ||w (s - S)||^2 over the masked points (Eq. 9), which need not all count the same.

    Parameters
    ----------
    scores, truth : (Q, 3). weights : (Q, 1). emphasis : (Q,).
    """
    squares = (weights * (scores - truth)).square().sum(dim=1)
    return LOSS_SCALE * (emphasis * squares).mean()


def _squared_error(scores: Tensor, truth: Tensor) -> float:
    """Unweighted mean squared error x 1e5, the readable number."""
    return 1e5 * float((scores.detach() - truth).square().sum(dim=1).mean())
