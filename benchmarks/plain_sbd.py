"""SBD (score-denoise, ICCV 2021) written plainly, at its published sizes: a yardstick."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointmend.diffusion.steps import decaying_steps
from pointmend.methods.sbd import ENSEMBLE, STEPS

NEIGHBOURS = 16
FRAME_NEIGHBOURS = 32
TRAINED_POINTS = 128
CLEAN_NEIGHBOURS = 4


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Rows of (B, N, C) by (B, M, k) -> (B, M, k, C)."""
    batch = torch.arange(len(x))[:, None, None]
    return x[batch, index]


def nearest(points: Tensor, queries: Tensor, k: int) -> Tensor:
    """
    The k nearest points (B, N, C) of queries (B, M, C), by rows: (B, M, k).

    Patch by patch, so that the distances never take memory for all patches at once.
    """
    pairs = zip(queries, points)
    return torch.stack([torch.cdist(q, p).topk(k, largest=False).indices for q, p in pairs])


class DenseEdgeUnit(nn.Module):
    """Linear to 24 channels, then a dense edge convolution of growth 12 over 16 neighbours."""

    def __init__(self, inputs: int, *, first: bool) -> None:
        super().__init__()
        self.first = first
        self.transform = nn.Linear(inputs, 24)
        self.layers = nn.ModuleList(
            [nn.Linear(24 if first else 72, 12), nn.Linear(36, 12), nn.Linear(48, 12)]
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.transform(x)
        if not self.first:
            x = torch.relu(x)
        index = nearest(x, x, NEIGHBOURS + 1)[:, :, 1:]
        near = gather(x, index)
        own = x.unsqueeze(2).expand_as(near)
        edge = near - own if self.first else torch.cat([own, near, near - own], dim=-1)
        y1 = torch.cat([torch.relu(self.layers[0](edge)), own], dim=-1)
        y2 = torch.cat([torch.relu(self.layers[1](y1)), y1], dim=-1)
        y3 = torch.cat([self.layers[2](y2), y2], dim=-1)
        return y3.amax(dim=2)


class ScoreBlock(nn.Module):
    """Residual block with batch normalisation and the condition added."""

    def __init__(self) -> None:
        super().__init__()
        self.bn_0, self.bn_1 = nn.BatchNorm1d(128), nn.BatchNorm1d(128)
        self.fc_0, self.fc_1 = nn.Linear(128, 128), nn.Linear(128, 128)
        self.fc_c = nn.Linear(63, 128, bias=False)

    def forward(self, net: Tensor, condition: Tensor) -> Tensor:
        dx = self.fc_0(torch.relu(self.bn_0(net)))
        dx = self.fc_1(torch.relu(self.bn_1(dx)))
        return net + dx + self.fc_c(condition)


class SBD(nn.Module):
    """Its feature network and score network."""

    def __init__(self) -> None:
        super().__init__()
        self.units = nn.ModuleList(
            [DenseEdgeUnit(3, first=True)] + [DenseEdgeUnit(60, first=False) for _ in range(3)]
        )
        self.conv_p = nn.Linear(63, 128)
        self.blocks = nn.ModuleList([ScoreBlock() for _ in range(4)])
        self.bn_out, self.conv_out = nn.BatchNorm1d(128), nn.Linear(128, 3)

    def features(self, noisy: Tensor) -> Tensor:
        """Features (B, N, 60) of patches (B, N, 3)."""
        x = noisy
        for unit in self.units:
            x = unit(x)
        return x

    def scores(self, offsets: Tensor, features: Tensor) -> Tensor:
        """
        Scores of positions as points see them.

        Parameters
        ----------
        offsets : (B, M, k, 3) from each point to the k positions it scores.
        features : (B, M, 60) of the points.

        Returns
        -------
        (B M k, 3)
        """
        condition = features.unsqueeze(2).expand(-1, -1, offsets.shape[2], -1)
        given = torch.cat([offsets, condition], dim=-1).reshape(-1, 63)
        net = self.conv_p(given)
        for block in self.blocks:
            net = block(net, given)
        scores: Tensor = self.conv_out(torch.relu(self.bn_out(net)))
        return scores

    def forward(self, noisy: Tensor, clean: Tensor) -> Tensor:
        """The training loss of patches (B, N, 3)."""
        features = self.features(noisy)
        at = torch.randperm(noisy.shape[1])[:TRAINED_POINTS]
        frame = gather(noisy, nearest(noisy, noisy[:, at], FRAME_NEIGHBOURS))
        targets = gather(clean, nearest(clean, frame.flatten(1, 2), CLEAN_NEIGHBOURS)).mean(dim=2)
        scores = self.scores(frame - noisy[:, at].unsqueeze(2), features[:, at])
        missing = scores - (targets - frame.flatten(1, 2)).reshape(-1, 3)
        return missing.square().sum(dim=1).mean()

    @torch.no_grad()
    def denoise(self, noisy: Tensor, steps: int) -> Tensor:
        """Some steps of the published sampler on all patches (B, N, 3) of a cloud at once."""
        features, current = self.features(noisy), noisy.clone()
        for step in decaying_steps(STEPS)[:steps]:
            index = nearest(current, noisy, ENSEMBLE)
            offsets = gather(current, index) - noisy.unsqueeze(2)
            scores = self.scores(offsets, features).reshape(len(noisy), -1, 3)
            summed = torch.zeros_like(current)
            summed.scatter_add_(1, index.flatten(1).unsqueeze(2).expand_as(scores), scores)
            current += step.factor * summed
        return current
