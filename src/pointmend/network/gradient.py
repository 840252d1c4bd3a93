"""G and xi: every neighbour's gradient at a point, and their fusion (Eq. 11-12)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import Planes

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
        result: Tensor = x + self.second(self.first(torch.relu(x)).relu_())
        return result


class GradientPrediction(nn.Module):
    """
    G and xi: scores at points v from the features of their neighbours (Eq. 11-12).

    g_{v,i}, w_{v,i} = G(v - x_i, F_i) with four residual blocks; xi(v) = sum_i g_{v,i}
    softmax(w)_i. The importance weight is one number per neighbour, so that the fusion does not
    depend on the axes. With planes, neighbour i also offers its own planes (and the curved surfaces
    they lead to): what would bring v onto them is mixed by a softmax and added to g.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        planes = len(config.scales) if config.planes else 0
        votes = planes + config.curved_scales
        seen = 3 + votes + (2 * planes if config.mutual else 0)
        # The first layer is split: its feature half is made per point, not per pair.
        self.offset = nn.Linear(seen, config.hidden)
        self.feature = nn.Linear(config.channels, config.hidden, bias=False)
        if config.mutual:
            self.own_feature = nn.Linear(config.channels, config.hidden, bias=False)
        self.blocks = nn.Sequential(*(ResidualBlock(config.hidden) for _ in range(config.blocks)))
        self.output = nn.Linear(config.hidden, 3 + 1 + votes)
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
        place = torch.empty(len(cloud.positions), dtype=torch.int64, device=rows.device)
        place[rows] = torch.arange(len(rows), device=rows.device)
        told = self.feature(fused)
        own = self.own_feature(fused) if self.config.mutual else None
        if torch.is_grad_enabled() or at.device.type != "cpu":
            return self._scores_at(cloud, told, own, place, at)
        parts = [self._scores_at(cloud, told, own, place, part) for part in torch.split(at, CHUNK)]
        return torch.cat(parts) if parts else fused.new_zeros(0, 3)

    def _scores_at(
        self, cloud: LocalGeometry, told: Tensor, own: Tensor | None, place: Tensor, at: Tensor
    ) -> Tensor:
        """
        Scores (Q, 3) at some rows (Q,).

        Parameters
        ----------
        told, own : (U, hidden) what the features say of a point as a neighbour, and as v itself.
        place : row of the cloud -> row of told and own.
        """
        k = self.config.gradient_neighbours
        neighbours = cloud.neighbours[at, :k]
        pairs = neighbours.reshape(-1)
        offsets = cloud.positions[at].unsqueeze(1) - cloud.positions[neighbours]
        votes = None
        if cloud.planes is not None:
            votes = PlaneVotes(cloud.planes, at, pairs, offsets, curved=self.config.curved)

        hidden = self._see(cloud, pairs, offsets, votes) + told.index_select(0, place[pairs])
        if own is not None:
            itself = own.index_select(0, place[at]).unsqueeze(1)
            hidden = (hidden.reshape(-1, k, itself.shape[2]) + itself).flatten(0, 1)
        answer = self.output(self.blocks(hidden).relu_())
        gradient = FREE_GAIN * answer[:, :3]
        if cloud.frames is not None:
            gradient = torch.bmm(gradient.unsqueeze(1), cloud.frames[pairs]).squeeze(1)
        if votes is not None:
            gradient = gradient + votes.mix(torch.softmax(answer[:, 4:], dim=1))
        return self.fuse(gradient.reshape(-1, k, 3), answer[:, 3].reshape(-1, k))

    def _see(
        self, cloud: LocalGeometry, pairs: Tensor, offsets: Tensor, votes: PlaneVotes | None
    ) -> Tensor:
        """The half of the first layer that looks at the geometry of pairs (v, i): (P, hidden)."""
        frames = None if cloud.frames is None else cloud.frames[pairs]
        seen = [OFFSET_GAIN * turned(offsets.reshape(-1, 1, 3), frames).squeeze(1)]
        if votes is not None:
            seen.append(HEIGHT_GAIN * votes.heights)
            if self.config.mutual:
                seen.extend((HEIGHT_GAIN * votes.own_heights, votes.agreement))
        hidden: Tensor = self.offset(torch.cat(seen, dim=1))
        return hidden

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


class PlaneVotes:
    """
    What the planes of x_i say about v, and those of v about x_i, for P = Q k pairs.

    Attributes
    ----------
    normals : (P, V, 3) of i's V = S planes, and of its curved surfaces after them if they vote.
    heights : (P, V) how far v must move along these normals.
    own_heights : (P, S) the same for x_i and v's planes, all on the side of i's normals.
    agreement : (P, S) |n_i . n_v|.
    """

    def __init__(
        self, planes: Planes, at: Tensor, pairs: Tensor, offsets: Tensor, *, curved: bool
    ) -> None:
        k, scales = offsets.shape[1], planes.height.shape[1]
        away = offsets.reshape(-1, 3, 1)
        normals = planes.normal[pairs]
        own_normals = planes.normal[at].unsqueeze(1).expand(-1, k, -1, -1).reshape(-1, scales, 3)
        cosine = (normals * own_normals).sum(-1)
        depth = torch.bmm(normals, away).squeeze(2)
        own_depth = torch.bmm(own_normals, away).squeeze(2)
        own_heights = planes.height[at].unsqueeze(1).expand(-1, k, -1).reshape(-1, scales)
        self.own_heights = _on_side(cosine, own_heights + own_depth)
        self.agreement = cosine.abs()
        self.normals, self.heights = normals, planes.height[pairs] - depth
        if curved:
            # Between two points of a curved surface the mean of their normals stands upright.
            between = 0.5 * (depth + _on_side(cosine, own_depth))
            surfaces = planes.curved[pairs] - between[:, :-1]
            self.normals = torch.cat([normals, normals[:, :-1]], dim=1)
            self.heights = torch.cat([self.heights, surfaces], dim=1)

    def mix(self, shares: Tensor) -> Tensor:
        """The displacement (P, 3) of v that the votes agree on by their shares (P, V)."""
        return torch.bmm((shares * self.heights).unsqueeze(1), self.normals).squeeze(1)


def _on_side(cosine: Tensor, height: Tensor) -> Tensor:
    """Heights along axes turned to the side of others, whose cosine with them is given."""
    return torch.where(cosine < 0, -height, height)
