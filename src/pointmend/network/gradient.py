"""Network: G and xi, every neighbour's gradient at a point and their fusion (Eq. 11-12)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointmend.chunks import in_chunks
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.ways import WAY_SCALES

from .config import NetworkConfig
from .dense import Dense
from .features import turned
from .pairs import Pairs, PointTable

# A free gradient of order one means this length: the noise the network knows is 0.001-0.03.
FREE_GAIN = 0.02

# What neighbours have been moved by together is a tenth of that, and has to be heard.
WAYS_GAIN = 10.0 / FREE_GAIN

# Points scored at once by each thread when nothing is learned: fewer would keep their pairs in its
# cache, but cost more calls than that saves.
CHUNK = 512


class ResidualBlock(nn.Module):
    """x + W2 relu(W1 relu(x)), the identity at the start: (P, C) -> (P, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = Dense(width, width)
        self.second = Dense(width, width)
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
    they lead to): what would bring v onto them is mixed by a softmax and added to g. Who is told
    what the points around v have been moved by together adds shares of that.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        planes = config.plane_scales
        votes = planes + config.curved_scales
        seen = 3 + votes + (2 * planes if config.mutual else 0)
        # The first layer is split: its feature half is made per point, not per pair.
        self.offset = Dense(seen, config.hidden)
        self.feature = Dense(config.channels, config.hidden, bias=False)
        if config.mutual:
            self.own_feature = Dense(config.channels, config.hidden, bias=False)
        if config.told_noise:
            self.told = Dense(planes + 1, config.hidden, bias=False)
            nn.init.zeros_(self.told.weight)
        if config.told_ways:
            self.ways = Dense(3 * WAY_SCALES, config.hidden, bias=False)
            self.returned = Dense(config.hidden, WAY_SCALES)
            for parameter in (self.ways.weight, self.returned.weight, self.returned.bias):
                nn.init.zeros_(parameter)
        self.blocks = nn.Sequential(*(ResidualBlock(config.hidden) for _ in range(config.blocks)))
        self.output = Dense(config.hidden, 3 + 1 + votes)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(
        self,
        cloud: LocalGeometry,
        fused: Tensor,
        rows: Tensor,
        at: Tensor,
        told: Tensor | None = None,
        ways: Tensor | None = None,
    ) -> Tensor:
        """
        Scores at some of the cloud's points.

        Parameters
        ----------
        fused : (U, channels) F of the points that serve as neighbours.
        rows : (U,) which rows of the cloud they are.
        at : (Q,) the rows of the cloud asked for; their neighbours must all be among rows.
        told : (M, S + 1) what is known of the noise of all points; None for nothing.
        ways : (M, WAY_SCALES, 3) back from where points have been moved together, in the axes of
            the cloud; None as long as nothing has moved, and for who is not told.

        Returns
        -------
        (Q, 3) scores in the axes of the cloud.
        """
        place = torch.empty(len(cloud.positions), dtype=torch.int64, device=rows.device)
        place[rows] = torch.arange(len(rows), device=rows.device)
        said = self.feature(fused)
        own = self.own_feature(fused) if self.config.mutual else None
        table = PointTable.of(cloud)

        def scores_at(part: Tensor) -> Tensor:
            near = cloud.neighbours[part, : self.config.gradient_neighbours].t()
            pairs = Pairs(table, part, near, curved=self.config.curved)
            heard = said.index_select(0, place[near].reshape(-1)).reshape(*near.shape, -1)
            if own is not None:
                heard = heard + own.index_select(0, place[part])
            if told is not None:
                heard = heard + self.told(told.index_select(0, part))
            if ways is None:
                return self._scores(pairs, heard)
            back = ways.index_select(0, part)
            own_axes = None if cloud.frames is None else cloud.frames.index_select(0, part)
            heard = heard + self.ways(WAYS_GAIN * turned(back, own_axes).flatten(1))
            return self._scores(pairs, heard, back)

        return in_chunks(lambda rows: scores_at(at[rows]), at, CHUNK)

    def _scores(self, pairs: Pairs, heard: Tensor, back: Tensor | None = None) -> Tensor:
        """
        Scores (Q, 3) of the points of some pairs.

        Parameters
        ----------
        heard : (k, Q, hidden) what the features say: of x_i as a neighbour, and of v itself.
        back : (Q, WAY_SCALES, 3) what v may be given a share of.
        """
        seen = pairs.seen(mutual=self.config.mutual).flatten(1)
        hidden = self.offset(seen.t()) + heard.flatten(0, 1)
        hidden = self.blocks(hidden).relu_()
        # One row per number told, like the geometry of the pairs.
        answer = torch.addmm(self.output.bias.unsqueeze(1), self.output.weight, hidden.t())
        answer = answer.reshape(-1, *heard.shape[:2])
        gradient = pairs.from_axes(FREE_GAIN * answer[:3])
        if pairs.has_planes:
            gradient = gradient + pairs.mix(torch.softmax(answer[4:], dim=0))
        if back is not None:
            shares = self.returned(hidden).reshape(*heard.shape[:2], WAY_SCALES)
            gradient = gradient + torch.einsum("kqs,qsc->ckq", shares, back)
        return self.fuse(gradient, answer[3]).t()

    def fuse(self, gradients: Tensor, weights: Tensor) -> Tensor:
        """
        xi (Eq. 12): sum_i g_i softmax(w)_i, or their mean (Table 3, "GF(const)").

        Parameters
        ----------
        gradients : (3, k, Q).
        weights : (k, Q).

        Returns
        -------
        (3, Q)
        """
        if self.config.gradient_weights == "constant":
            return gradients.mean(dim=1)
        return (gradients * torch.softmax(weights, dim=0)).sum(dim=1)
