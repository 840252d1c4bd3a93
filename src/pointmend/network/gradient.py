"""G and xi: every neighbour's gradient at a point, and their fusion (Eq. 11-12)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import SCALES

from .config import NetworkConfig
from .features import HEIGHT_GAIN, OFFSET_GAIN, turned

# A free gradient of order one means this length: the noise the network knows is 0.001-0.03.
FREE_GAIN = 0.02

# Points scored at once when nothing is learned: their pairs' activations stay in the cache.
CHUNK = 128


class ResidualBlock(nn.Module):
    """x + W2 relu(W1 relu(x)), the identity at the start: (P, C) -> (P, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Add the block's correction."""
        result: Tensor = x + self.second(torch.relu(self.first(torch.relu(x))))
        return result


class GradientPrediction(nn.Module):
    """
    G and xi: scores at points v from the features of their neighbours (Eq. 11-12).

    g_{v,i}, w_{v,i} = G(v - x_i, F_i) with four residual blocks; xi(v) = sum_i g_{v,i}
    softmax(w)_i. The importance weight is one number per neighbour, so that the fusion does not
    depend on the axes. With planes, neighbour i also offers its own planes: what would bring v
    onto them is mixed by a softmax over the scales and added to g.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        planes = SCALES if config.planes else 0
        # The first layer is split: its feature half is made per point, not per pair.
        self.offset = nn.Linear(3 + planes, config.hidden)
        self.feature = nn.Linear(config.channels, config.hidden, bias=False)
        self.blocks = nn.Sequential(*(ResidualBlock(config.hidden) for _ in range(config.blocks)))
        self.output = nn.Linear(config.hidden, 3 + 1 + planes)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, cloud: LocalGeometry, fused: Tensor, rows: Tensor, at: Tensor) -> Tensor:
        """
        Scores at some of the cloud's points.

        Parameters
        ----------
        fused : (U, channels) F of the points that serve as neighbours.
        rows : (U,) which rows of the cloud they are.
        at : (Q,) the rows of the cloud asked for; their neighbours must all be among rows.

        Returns
        -------
        (Q, 3) scores in the axes of the cloud.
        """
        local = torch.empty(len(cloud.positions), dtype=torch.int64, device=rows.device)
        local[rows] = torch.arange(len(rows), device=rows.device)
        projected = self.feature(fused)
        if torch.is_grad_enabled() or at.device.type != "cpu":
            return self._scores_at(cloud, projected, local, at)
        parts = [self._scores_at(cloud, projected, local, part) for part in torch.split(at, CHUNK)]
        return torch.cat(parts) if parts else projected.new_zeros(0, 3)

    def _scores_at(
        self, cloud: LocalGeometry, projected: Tensor, local: Tensor, at: Tensor
    ) -> Tensor:
        """Scores at (Q,) rows, from features (U, hidden) found by local: row -> place in U."""
        k = self.config.gradient_neighbours
        neighbours = cloud.neighbours[at, :k]
        pairs = neighbours.reshape(-1)
        offsets = cloud.positions[at].unsqueeze(1) - cloud.positions[neighbours]
        frames = None if cloud.frames is None else cloud.frames[pairs]
        seen = OFFSET_GAIN * turned(offsets.reshape(-1, 1, 3), frames).squeeze(1)
        if self.config.planes and cloud.planes is not None:
            normals = cloud.planes.normal[pairs]
            heights = cloud.planes.height[pairs] - torch.bmm(
                normals, offsets.reshape(-1, 3, 1)
            ).squeeze(2)
            seen = torch.cat([seen, HEIGHT_GAIN * heights], dim=1)
        hidden = self.offset(seen) + projected[local[pairs]]
        answer = self.output(torch.relu(self.blocks(hidden)))

        gradient = FREE_GAIN * answer[:, :3]
        if frames is not None:
            gradient = torch.bmm(gradient.unsqueeze(1), frames).squeeze(1)
        if self.config.planes and cloud.planes is not None:
            votes = torch.softmax(answer[:, 4:], dim=1) * heights
            gradient = gradient + torch.bmm(votes.unsqueeze(1), normals).squeeze(1)
        return self.fuse(gradient.reshape(-1, k, 3), answer[:, 3].reshape(-1, k))

    def fuse(self, gradients: Tensor, weights: Tensor) -> Tensor:
        """
        xi (Eq. 12): sum_i g_i softmax(w)_i, or their mean (Table 3, "GF(const)").

        Parameters
        ----------
        gradients : (Q, k, 3).
        weights : (Q, k).

        Returns
        -------
        (Q, 3)
        """
        if self.config.gradient_weights == "constant":
            return gradients.mean(dim=1)
        return (gradients * torch.softmax(weights, dim=1).unsqueeze(2)).sum(dim=1)
