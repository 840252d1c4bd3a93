"""Denoising: asking the network for the scores of a cloud, patch by patch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointmend.diffusion.schedule import TRAINING_SCHEDULE
from pointmend.geometry.frames import patch_rotation
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.patches import Patches
from pointmend.network.score import ScoreNetwork

from .amends import Amends
from .first_look import FirstLook

Float64 = NDArray[np.float64]

# Farther from the surface than five times the largest noise trained on, a point is an outlier:
# the network knows nothing about it, and it stays where it is.
LONGEST_SCORE = 5.0 * float(TRAINING_SCHEDULE.sigma_bar[-1])


@dataclass(frozen=True)
class Seen:
    """What G hears of a batch of patches: their cloud, and F (U, channels) of some rows (U,)."""

    cloud: LocalGeometry
    rows: Tensor
    fused: Tensor


class PatchScorer:
    """
    Scores of a cloud's points, each from the patch that owns it.

    The first call sees the noisy input: its features E(x^tau) are made once and kept for all
    later steps (Alg. 2, line 6).

    Parameters
    ----------
    network : in evaluation mode, on `device`.
    patches : the cover of the cloud.
    batch : patches given to the network at once.
    after_patch : called with the number of patches done, after each batch.
    """

    def __init__(
        self,
        network: ScoreNetwork,
        patches: Patches,
        device: torch.device,
        batch: int,
        after_patch: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.network = network
        self.patches = patches
        self.device = device
        self.batch = batch
        self.after_patch = after_patch
        self._initial: list[tuple[Tensor, Tensor, Tensor | None]] = []
        # x^tau, and for a network that is told the noise what it has seen of that, for as long as
        # nothing has moved and it may be asked for again, now told.
        self._start = np.empty((0, 3))
        self._seen: list[Seen] = []
        self._spreads = np.zeros((len(patches.owner), network.config.plane_scales))
        self._tails = np.zeros((len(patches.owner), network.config.tail_scales))
        self._turns: list[Float64] = []

    @torch.inference_mode()
    def __call__(
        self,
        x: Float64,
        time: float,
        sigma: Float64 | float = 0.0,
        owed: Amends | None = None,
    ) -> Float64:
        """
        Scores s(x | x^tau) of all points (Alg. 2, lines 9-11).

        Parameters
        ----------
        x : (N, 3) current positions; those of the first call are x^tau.
        time : t / tau.
        sigma : the noise of x^tau, or (N,) that around each point, 0 when it is not known.
        owed : what is added to the scores for what the points have been moved by together.

        Returns
        -------
        (N, 3)
        """
        scores = np.zeros_like(x)
        noise = np.broadcast_to(sigma, len(x)).astype(np.float32)
        if not self._initial:
            self._start = x.copy()
        moved = not (time == 1.0 and np.array_equal(x, self._start))
        if moved:
            self._seen.clear()
        for number, first in enumerate(range(0, len(self.patches.members), self.batch)):
            rows = slice(first, first + self.batch)
            members, owned = self.patches.members[rows], self.patches.owned[rows]
            at = np.concatenate([place + i * self.patches.size for i, place in enumerate(owned)])
            asked = torch.from_numpy(at).to(self.device)
            seen = self._see(x, time, number, asked)
            points = members.reshape(-1)
            around = torch.from_numpy(noise[points]).to(self.device)
            told = self.network.compared(self._initial[number][2], around)
            way = torch.from_numpy((self._start - x)[points]).to(self.device)
            ways = self.network.ways(seen.cloud, way) if moved else None
            answer = self.network.gradient(seen.cloud, seen.fused, seen.rows, asked, told, ways)
            turned = np.repeat(self._turns[number], [len(place) for place in owned], axis=0)
            back = np.einsum("qi,qij->qj", answer.cpu().double().numpy(), turned)
            if owed is not None:
                back += owed.of(points).around(seen.cloud.neighbours[asked])
            scores[points[at]] = back
            self.after_patch(first + len(members))
        scores[np.sum(scores**2, axis=1) > LONGEST_SCORE**2] = 0.0
        return scores

    def first_look(self, x: Float64) -> FirstLook:
        """What the network says of the noisy input x^tau (N, 3): the first call, and no other."""
        return FirstLook(self(x, 1.0), self._spreads, self._tails)

    def _see(self, x: Float64, time: float, number: int, asked: Tensor) -> Seen:
        """E and F of a batch of patches of the cloud (N, 3), for the rows (Q,) asked for."""
        if number < len(self._seen):
            return self._seen[number]
        first_call = number == len(self._initial)
        rows = slice(number * self.batch, (number + 1) * self.batch)
        if first_call:
            self._turns.append(self._upright(x, rows))
        cloud = self._look(x, rows, self._turns[number])
        current = self.network.features(cloud)
        if first_call:
            self._initial.append((current, cloud.positions, self.network.spreads(cloud)))
            if cloud.planes is not None:
                points = self.patches.members[rows].reshape(-1)[asked.cpu().numpy()]
                self._spreads[points] = cloud.planes.spread[asked, :, 0].cpu().double().numpy()
                self._tails[points] = cloud.planes.tails[asked].cpu().double().numpy()
        initial, start, _ = self._initial[number]
        times = torch.full((len(cloud.positions),), time, device=self.device)
        near = self.network.needed(cloud, asked)
        seen = Seen(cloud, near, self.network.fused(cloud, current, initial, start, times, near))
        if first_call and time == 1.0 and self.network.config.told_noise:
            self._seen.append(seen)
        return seen

    def _look(self, x: Float64, rows: slice, turns: Float64) -> LocalGeometry:
        """What some patches of the cloud (N, 3) look like."""
        members, centres = self.patches.members[rows], self.patches.centres[rows, None]
        local = (x[members] - centres) @ turns.transpose(0, 2, 1)
        # Double, so that which way a point's axes turn does not hang on where a patch begins.
        positions = torch.from_numpy(local.reshape(-1, 3)).to(self.device)
        return self.network.look(positions, self.patches.size)

    def _upright(self, x: Float64, rows: slice) -> Float64:
        """The rotation of each patch: (batch, 3, 3), the identity unless the network wants one."""
        members = self.patches.members[rows]
        if self.network.config.frame != "patch":
            return np.tile(np.eye(3), (len(members), 1, 1))
        centred = x[members] - self.patches.centres[rows, None]
        return np.stack([patch_rotation(patch) for patch in centred])
