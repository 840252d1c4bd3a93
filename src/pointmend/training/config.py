"""Training: everything a training run can choose, as one typed configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from pointmend.errors import InputError
from pointmend.network.config import DEFAULT, PAPER, NetworkConfig
from pointmend.settings import check_choices, check_keys

Target = Literal["nearest", "projection"]
Diffusion = Literal["preserving", "generative"]
Method = Literal["adamw", "muon"]


@dataclass(frozen=True)
class TrainingConfig:
    """
    The settings of Algorithm 1 and of the optimiser.

    Attributes
    ----------
    network : the network trained.
    diffusion : noise is added to the points where they are ("preserving", Eq. 1), or to points
        drawn towards the patch's centre as DDPM does ("generative", Table 3's GDM).
    target : S as in the paper, the nearest clean point ("nearest", Eq. 14), or the way to the
        surface itself ("projection"), which has a fraction of the variance.
    tangential : share of the nearest point's tangential part added to a projection target.
    patch_points : points of a patch (Alg. 1, line 2).
    mask_points : K_p, the central points that carry the loss (line 3). The paper says 256; 128
        gives more patches per hour for nearly the same gradient.
    stages : K, how many times a patch is scored and moved on (Alg. 1 has two). The sampler takes
        more steps than one, and what later ones meet is what earlier ones leave.
    followed_points : central points that scores move from stage to stage; the truth moves the
        others. Alg. 1 moves the masked ones so; then those at the border of the mask learn from
        surroundings that are cleaner than any the sampler sees.
    anchored : where points lie far apart against the noise, all stages aim at where S leads from
        the noisy point, later ones too, not at what is nearest to where a point has come by then:
        else points slide off tips and edges a little with every step. For the mean-preserving
        diffusion.
    amends : what the sampler makes (`SamplerOptions.amends`), from stage to stage, so that later
        ones meet what they will meet there.
    detail : how much more a point counts where the surface around it bends all ways (`bending`):
        what may be a tip or an edge is then less taken for noise. Needs the target "projection".
    t_min : least time drawn (line 4): below it the noise is a tenth of a percent.
    loss_lambda : lambda of Eq. 9.
    scale : patches are scaled by a factor from this range.
    thin_shapes : thin-walled shapes made here (`geometry/thin.py`) that are added to those of the
        data folder, and as many solid ones: ready-made collections have few of them.
    relief_shapes : bodies with fine relief (`geometry/relief.py`) that are added likewise.
    limb_shapes : bodies with limbs and frames of bars (`geometry/limbs.py`), likewise.
    shell_shapes : cast parts with walls, ribs and bosses (`geometry/shells.py`), likewise.
    batch : patches per step and process.
    optimiser : AdamW for all weights, or Muon for the matrices of inner layers, which learns as
        much from about a third of the patches, and AdamW for the others.
    learning_rate, warmup, weight_decay, ema : of either, its warm-up in steps, and the decay of the
        averaged weights that are validated and released.
    clip : gradients longer than this multiple of their running norm are shortened to it.
    seed : of the patches and of the initial weights.
    """

    network: NetworkConfig = field(default_factory=NetworkConfig)
    diffusion: Diffusion = "preserving"
    target: Target = "nearest"
    tangential: float = 0.0
    patch_points: int = 1000
    mask_points: int = 128
    stages: int = 2
    followed_points: int = 0
    anchored: bool = False
    amends: float = 0.0
    detail: float = 0.0
    t_min: int = 30
    loss_lambda: float = 0.99
    scale: tuple[float, float] = (0.8, 1.25)
    thin_shapes: int = 0
    relief_shapes: int = 0
    limb_shapes: int = 0
    shell_shapes: int = 0
    batch: int = 8
    optimiser: Method = "adamw"
    learning_rate: float = 1.5e-3
    warmup: int = 100
    weight_decay: float = 1e-4
    ema: float = 0.999
    clip: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_choices(self, "training")
        if min(self.batch, self.patch_points, self.mask_points) < 1:
            raise InputError("training needs batch, patch_points and mask_points of at least 1")
        if not 2 <= self.stages <= self.t_min:
            raise InputError(f"stages is {self.stages}; 2 to t_min ({self.t_min}) can be trained")
        if not 0.0 <= self.amends < 1.0:
            raise InputError(f"amends is {self.amends}; it must be from 0 to below 1")
        if not 0.0 <= self.detail < math.inf:
            raise InputError(f"detail is {self.detail}; it must be 0 or more")
        if self.detail > 0.0 and self.target != "projection":
            raise InputError('detail needs target="projection", which knows how a surface bends')
        if self.diffusion == "generative" and (self.stages > 2 or self.anchored):
            raise InputError("a generative diffusion has two stages that are not anchored")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Build from plain values; an unknown key is an error."""
        check_keys(cls, values, "training")
        known = dict(values)
        if "network" in known:
            known["network"] = NetworkConfig.from_dict(known["network"])
        if "scale" in known:
            known["scale"] = tuple(known["scale"])
        return cls(**known)

    def changed(self, settings: Mapping[str, Any]) -> TrainingConfig:
        """The same with other settings; those of the network are named like network.hidden."""
        values = self.to_dict()
        for key, value in settings.items():
            if key.startswith("network."):
                values["network"] = values["network"] | {key.removeprefix("network."): value}
            else:
                values[key] = value
        return TrainingConfig.from_dict(values)


CONFIGURATIONS = {
    "paper": TrainingConfig(network=PAPER),
    "default": replace(TrainingConfig(network=DEFAULT), target="projection", optimiser="muon"),
}
