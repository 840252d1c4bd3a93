"""Network: F, the fusion of the current cloud's features with the noisy input's (Eq. 10)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .config import NetworkConfig

OCTAVES = 4
POSITION_GAIN = 20.0
NOISE_GAIN = 50.0


def three_layers(inputs: int, width: int) -> nn.Sequential:
    """The paper's 3-layer MLP: (M, inputs) -> (M, width)."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(inplace=True),
        nn.Linear(width, width),
        nn.ReLU(inplace=True),
        nn.Linear(width, width),
    )


def embed_time(time: Tensor) -> Tensor:
    """Relative times (M,) as sines and cosines at octaves: (M, 2 OCTAVES)."""
    angles = time.unsqueeze(1) * torch.pi * 2.0 ** torch.arange(OCTAVES, device=time.device)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def embed_noise(noise: Tensor) -> Tensor:
    """Noise levels (M,), 0 where unknown, as a level and whether it is known: (M, 2)."""
    return torch.stack([NOISE_GAIN * noise, (noise > 0.0).to(noise)], dim=1)


class FeatureFusion(nn.Module):
    """
    F_t = F(x^t, t/T, E(x^t), E(x^T)) (Eq. 10), or one of Table 3's substitutes.

    e = MLP(x^t, t/T); e^t = MLP(e, E(x^t)); e^T = MLP(e, E(x^T));
    F_t = MLP(E(x^t) . e^t + E(x^T) . e^T). The noise of x^T, when told, is one more input of e.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.mode, self.told_noise = config.fusion, config.told_noise
        width = config.channels
        if self.mode == "learned":
            self.place = three_layers(3 + 2 * OCTAVES + (2 if config.told_noise else 0), width)
            self.weigh_current = three_layers(2 * width, width)
            self.weigh_initial = three_layers(2 * width, width)
            self.output = three_layers(width, width)

    def forward(
        self, place: Tensor, time: Tensor, noise: Tensor, current: Tensor, initial: Tensor
    ) -> Tensor:
        """
        Fuse.

        Parameters
        ----------
        place : (M, 3) where the points are: in the patch, or relative to where they started.
        time : (M,) t / tau.
        noise : (M,) sigma of x^T, or 0 where nobody knows it.
        current, initial : (M, channels) E(x^t) and E(x^T).

        Returns
        -------
        (M, channels)
        """
        if self.mode == "initial":
            return initial
        if self.mode == "current":
            return current
        if self.mode == "mean":
            return 0.5 * (current + initial)
        told = [POSITION_GAIN * place, embed_time(time)]
        if self.told_noise:
            told.append(embed_noise(noise))
        e = self.place(torch.cat(told, dim=1))
        weight_current = self.weigh_current(torch.cat([e, current], dim=1))
        weight_initial = self.weigh_initial(torch.cat([e, initial], dim=1))
        fused: Tensor = self.output(current * weight_current + initial * weight_initial)
        return fused
