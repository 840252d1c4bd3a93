"""Denoising: the sampler's choices, typed; the variants of Tables 3 and 4 are values in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pointmend.errors import InputError
from pointmend.settings import check_choices

Mode = Literal["synchronised", "independent"]
Estimator = Literal["calibrated", "variance", "rms"]
Plan = Literal["aligned", "unaligned", "one-step", "decaying", "generative"]

# How far a point's result depends on others, in local spacings: at 48 what is beyond changes it
# by less than a thousandth of the noise (RMS; `python -m benchmarks.tiles`).
HALO = 48.0


@dataclass(frozen=True)
class SamplerOptions:
    """
    How Algorithm 2 is run.

    Attributes
    ----------
    mode : "independent" patches iterate on their own and are stitched at the end (the paper);
        "synchronised" patches advance together, exchange positions after each step and compute
        scores only for the points they own.
    estimator : sigma by Eq. 15 to the letter ("variance"), the RMS of the scores ("rms"), or the
        RMS corrected by what it reads at known noise ("calibrated").
    plan : Eq. 16 on the training schedule ("aligned"), the appendix's variant ("unaligned"), or
        Table 3's OneStep, FixedSched ("decaying") and GDM ("generative", for a network trained so).
    bend : how much of an aligned plan's way lies in its first steps: times fall as (l / L)^bend.
        The paper's is 1; with more, later steps have less left to do.
    amends : share of what a point's neighbours have been moved by on average that is added to its
        score, back to where they came from (`Amends`), less in wide noise. The paper's is 0; with
        more, details that were taken for noise come back, and smooth surfaces keep a little more.
    patch_points : points of a patch; 0 takes the model's own choice.
    overlap : patches a point lies in on average.
    batch : patches given to the network at once.
    thinning : score the cloud in thinner parts while the noise left is wide against the spacing.
    tile_points : points of a tile; a larger cloud is worked on tile by tile, which bounds memory
        (about 3.5 kB per point of a tile) and hardly changes the result.
    """

    mode: Mode = "synchronised"
    estimator: Estimator = "calibrated"
    plan: Plan = "aligned"
    bend: float = 1.6
    amends: float = 0.2
    patch_points: int = 0
    overlap: float = 6.0
    batch: int = 4
    thinning: bool = True
    tile_points: int = 150_000

    def __post_init__(self) -> None:
        check_choices(self, "sampler")
        if self.overlap < 1.0 or self.batch < 1:
            raise InputError("sampler.overlap and sampler.batch must be at least 1")
        if not 0.0 < self.bend < math.inf:
            raise InputError(f"sampler.bend is {self.bend}; it must be above 0")
        if not 0.0 <= self.amends < 1.0:
            raise InputError(f"sampler.amends is {self.amends}; it must be from 0 to below 1")
        if self.tile_points < 1000:
            raise InputError(f"sampler.tile_points is {self.tile_points}; at least 1000 are needed")
