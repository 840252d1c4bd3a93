"""Denoising: Algorithm 2, adaptive and iterative, on a cloud in the network's frame."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pointmend.diffusion.arrangement import (
    arrange,
    arrange_unaligned,
    primary_sigma,
    rms_sigma,
)
from pointmend.diffusion.steps import (
    Step,
    decaying_steps,
    generative_steps,
    one_step,
    reverse_steps,
)
from pointmend.errors import InputError
from pointmend.geometry.patches import Patches, cover_by_patches
from pointmend.geometry.spreading import spread_evenly
from pointmend.network.score import ScoreNetwork

from .amends import Amends, share_in
from .calibration import Calibration
from .first_look import FirstLook, trimmed_rms
from .noise_fit import FITTED_FROM, signs_of
from .options import SamplerOptions
from .scorer import PatchScorer
from .thinning import Thinning, score_in_parts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

# What a patch holds in the paper. A local network does not care where a patch ends: the region it
# works on is one patch, and nothing is computed twice.
PAPER_PATCH_POINTS = 1000

# Times that points push each other apart after every step, when they are to lie evenly. More often
# would take them off the surface faster than the next step brings them back; after the last one,
# which nothing follows, more of the gaps that are left close.
SPREADING_ROUNDS = 1
LAST_SPREADING_ROUNDS = 4


@dataclass(frozen=True)
class Progress:
    """
    Where a run stands, handed to the caller's function; raising there cancels the run.

    Attributes
    ----------
    done, total : network calls of this region.
    step, steps : steps taken, of how many (0 while the noise is being estimated).
    positions : (n, 3) the points of this region after a finished step, in input units; None in
        between.
    region, regions : which region of how many, from 0.
    rows : (n,) which points of the cloud these are; None when they are all of them, in order.
    """

    done: int
    total: int
    step: int
    steps: int
    positions: Float64 | None = None
    region: int = 0
    regions: int = 1
    rows: NDArray[np.int64] | None = None


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Verdict:
    """
    What the scores of the noisy cloud say: how noisy it is, and who may move.

    Attributes
    ----------
    sigma : the noise level (Eq. 15), in the network's frame.
    shares : (N,) the share of its way each point may go; None lets all go.
    thinning : into which parts the cloud is divided where noise is wide; None never divides it.
    around : (N,) the noise around each point, for a network that is told; None for sigma.
    """

    sigma: float
    shares: Float64 | None = None
    thinning: Thinning | None = None
    around: Float64 | None = None


Judge = Callable[[FirstLook], Verdict]


@dataclass(frozen=True)
class Outcome:
    """What Algorithm 2 found: positions (N, 3), sigma, and the steps it took."""

    positions: Float64
    sigma: float
    times: tuple[float, ...]


@dataclass(frozen=True)
class Sampler:
    """
    Algorithm 2 with its inputs bound: a network, its calibration and the sampler's options.

    All lengths are in the network's frame.
    """

    network: ScoreNetwork
    calibration: Calibration | None
    options: SamplerOptions
    device: torch.device

    @property
    def calibration_in_use(self) -> Calibration | None:
        """The calibration, if there is one and the estimator goes by it."""
        return self.calibration if self.options.estimator == "calibrated" else None

    @property
    def tells_noise(self) -> bool:
        """Whether the network is told the noise: if it listens, and the estimate can be trusted."""
        return self.network.config.told_noise and self.calibration_in_use is not None

    @property
    def makes_amends(self) -> bool:
        """Whether points are given back what they were moved by together: in our own plans only."""
        return self.options.amends > 0.0 and self.options.plan in ("aligned", "unaligned")

    def construct_patches(self, x: Float64) -> Patches:
        """Line 1: overlapping patches by farthest-point sampling."""
        size = self.options.patch_points
        if size == 0:
            size = len(x) if self.network.config.is_local else PAPER_PATCH_POINTS
        return cover_by_patches(x, size, self.options.overlap)

    def estimate_sigma(self, scores: Float64, spacing: float) -> float:
        """Line 2: the noise level from the scores (N, 3) of the noisy cloud (Eq. 15)."""
        if self.options.estimator == "variance":
            return primary_sigma(scores)
        table = self.calibration_in_use
        return rms_sigma(scores) if table is None else table.sigma(trimmed_rms(scores), spacing)

    def read_sigma(self, look: FirstLook, spacing: float) -> float:
        """Line 2 by all that a first look shows; by its scores alone where noise is low."""
        sigma = self.estimate_sigma(look.scores, spacing)
        table = self.calibration_in_use
        if table is None or table.fit is None or not sigma > FITTED_FROM * spacing > 0.0:
            return sigma
        signs = signs_of(look, spacing)
        return sigma if signs is None else table.fit.sigma(signs)

    def arrange_steps(
        self, sigma: float, steps: int, eta: float
    ) -> tuple[list[Step], tuple[float, ...]]:
        """Line 3: the steps, and the times (or noise levels) to report (Eq. 16)."""
        if self.options.plan == "one-step":
            return one_step(), (1.0, 0.0)
        if self.options.plan == "decaying":
            fixed = decaying_steps(steps)
            return fixed, (*(step.time for step in fixed), 0.0)
        if self.options.plan == "generative":
            arrangement = arrange(sigma, steps)
            plan = generative_steps(arrangement.schedule, arrangement.times)
        else:
            arrangement = (
                arrange_unaligned(sigma, steps)
                if self.options.plan == "unaligned"
                else arrange(sigma, steps, bend=self.options.bend)
            )
            plan = reverse_steps(arrangement.schedule, arrangement.times, eta)
        return plan, tuple(float(t) for t in arrangement.times)

    def first_look(self, x: Float64, wanted: int | None = None) -> FirstLook:
        """
        What the network says of a noisy cloud (N, 3), from which noise is estimated.

        With `wanted`, of so many of its first points.
        """
        count = len(x) if wanted is None else min(wanted, len(x))
        patches = self.construct_patches(x)
        if count < len(x):
            patches = patches.deciding_first(count)
        score = PatchScorer(self.network, patches, self.device, self.options.batch)
        return score.first_look(x).rows(slice(count))

    def first_scores(self, x: Float64, wanted: int | None = None) -> Float64:
        """The scores alone (N, 3) of `first_look`."""
        return self.first_look(x, wanted).scores

    def _scores_in_parts(
        self, x: Float64, part: Int64, sigma: Float64, owed: Amends | None
    ) -> Float64:
        """First scores (N, 3) of parts (N,) of a cloud (N, 3), told the noise (N,) left in it."""

        def score(rows: Int64) -> Float64:
            patches = self.construct_patches(x[rows])
            scorer = PatchScorer(self.network, patches, self.device, self.options.batch)
            return scorer(x[rows], 1.0, sigma[rows], None if owed is None else owed.of(rows))

        return score_in_parts(x, part, score)

    def run(
        self,
        x: Float64,
        *,
        steps: int,
        eta: float,
        judge: Judge,
        rng: np.random.Generator,
        report: Report,
        spread: bool = False,
    ) -> Outcome:
        """
        Denoise a cloud (Algorithm 2).

        Parameters
        ----------
        x : (N, 3) noisy positions, N >= 1.
        steps : L.
        eta : fresh noise of the sampler (Eq. 6).
        judge : given the first look at the noisy cloud, says its noise level and who may move.
        spread : spread the points along the surface after every step.
        """
        patches = self.construct_patches(x)
        independent = self.options.mode == "independent"
        if spread and independent:
            raise InputError("points of independent patches cannot be spread; do without `spread`")
        cover = patches.apart() if independent else patches
        current = x[patches.members].reshape(-1, 3) if independent else x.copy()

        calls, step_now, steps_planned = 0, 0, steps
        # Who is told the noise scores the noisy cloud twice: without knowing it, and knowing it.
        twice = int(self.tells_noise)

        def count(done: int) -> None:
            total = len(cover.members) * max(steps_planned + twice, 1)
            report(Progress(calls * len(cover.members) + done, total, step_now, steps_planned))

        scorer = PatchScorer(self.network, cover, self.device, self.options.batch, count)
        look = scorer.first_look(current)
        scores = look.scores
        calls = 1
        if independent:
            look = look.rows(patches.owner * patches.size + patches.place)
        verdict = judge(look)
        if verdict.shares is not None and not verdict.shares.any():
            return Outcome(x.copy(), verdict.sigma, (0.0,))
        plan, times = self.arrange_steps(verdict.sigma, steps, eta)
        steps_planned = len(plan)
        # DDPM's clouds are drawn to the origin first; all other plans have scale 1.
        shrunk = 1.0 / math.prod(step.scale for step in plan)
        current = current if shrunk == 1.0 else shrunk * current
        may_thin = self.options.thinning and not independent and shrunk == 1.0
        thinning = verdict.thinning if may_thin else None
        told = np.zeros(len(x))
        if self.tells_noise:
            told = told + (verdict.sigma if verdict.around is None else verdict.around)
        if independent:
            told = told[patches.members].reshape(-1)
        whole = x.copy()
        start, owed, share = current, None, share_in(verdict.sigma, self.options.amends)
        for number, step in enumerate(plan):
            if self.makes_amends and number > 0:
                owed = Amends(start - current, share)
            # At time t / tau that share of the noise is left.
            part = None if thinning is None else thinning.parts(verdict.sigma * step.time)
            if part is not None:
                scores = self._scores_in_parts(current, part, told * step.time, owed)
            elif number > 0 or shrunk != 1.0 or twice:
                scores = scorer(current, step.time, told, owed)
            calls = number + 1 + twice
            current = step.advance(current, scores, rng)
            if spread:
                # After each step, because the next one brings back what slid off the surface.
                last = number == len(plan) - 1
                current = spread_evenly(
                    current, LAST_SPREADING_ROUNDS if last else SPREADING_ROUNDS
                )
            step_now = number + 1
            whole = patches.stitch(current) if independent else current
            if verdict.shares is not None:
                whole = x + verdict.shares[:, None] * (whole - x)
            done = calls * len(cover.members)
            total = (len(plan) + twice) * len(cover.members)
            report(Progress(done, total, step_now, steps_planned, whole))
        return Outcome(whole, verdict.sigma, times)
