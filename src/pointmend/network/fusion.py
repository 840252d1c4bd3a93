"""Network: F, the fusion of the current cloud's features with the noisy input's (Eq. 10)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .config import NetworkConfig
from .dense import Dense

OCTAVES = 4
POSITION_GAIN = 20.0


def three_layers(inputs: int, width: int) -> nn.Sequential:
    """The paper's 3-layer MLP: (M, inputs) -> (M, width)."""
    return nn.Sequential(
        Dense(inputs, width),
        nn.ReLU(inplace=True),
        Dense(width, width),
        nn.ReLU(inplace=True),
        Dense(width, width),
    )


def embed_time(time: Tensor) -> Tensor:
    """Relative times (M,) as sines and cosines at octaves: (M, 2 OCTAVES)."""
    angles = time.unsqueeze(1) * torch.pi * 2.0 ** torch.arange(OCTAVES, device=time.device)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class FeatureFusion(nn.Module):
    """
    F_t = F(x^t, t/T, E(x^t), E(x^T)) (Eq. 10), or one of Table 3's substitutes.

    e = MLP(x^t, t/T); e^t = MLP(e, E(x^t)); e^T = MLP(e, E(x^T));
    F_t = MLP(E(x^t) . e^t + E(x^T) . e^T).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.mode = config.fusion
        width = config.channels
        if self.mode == "learned":
            self.place = three_layers(3 + 2 * OCTAVES, width)
            self.weigh_current = three_layers(2 * width, width)
            self.weigh_initial = three_layers(2 * width, width)
            self.output = three_layers(width, width)

    def forward(self, place: Tensor, time: Tensor, current: Tensor, initial: Tensor) -> Tensor:
        """
        Fuse.

        Parameters
        ----------
        place : (M, 3) where the points are: in the patch, or relative to where they started.
        time : (M,) t / tau.
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
        e = self.place(torch.cat([POSITION_GAIN * place, embed_time(time)], dim=1))
        weight_current = self.weigh_current(torch.cat([e, current], dim=1))
        weight_initial = self.weigh_initial(torch.cat([e, initial], dim=1))
        fused: Tensor = self.output(current * weight_current + initial * weight_initial)
        return fused
