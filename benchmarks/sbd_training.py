"""A plain training step of SBD (score-denoise, ICCV 2021) at its published sizes: a yardstick."""

from __future__ import annotations

import torch
from torch import Tensor, nn

NEIGHBOURS = 16
FRAME_NEIGHBOURS = 32
TRAINED_POINTS = 128
CLEAN_NEIGHBOURS = 4


def gather(x: Tensor, index: Tensor) -> Tensor:
    """Rows of (B, N, C) by (B, M, k) -> (B, M, k, C)."""
    batch = torch.arange(len(x))[:, None, None]
    return x[batch, index]


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
        index = torch.cdist(x, x).topk(NEIGHBOURS + 1, largest=False).indices[:, :, 1:]
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

    def forward(self, noisy: Tensor, clean: Tensor) -> Tensor:
        """The training loss of patches (B, N, 3)."""
        x = noisy
        for unit in self.units:
            x = unit(x)
        at = torch.randperm(noisy.shape[1])[:TRAINED_POINTS]
        index = torch.cdist(noisy[:, at], noisy).topk(FRAME_NEIGHBOURS, largest=False).indices
        frame = gather(noisy, index)
        centred = frame - noisy[:, at].unsqueeze(2)
        to_clean = torch.cdist(frame.flatten(1, 2), clean)
        nearest = to_clean.topk(CLEAN_NEIGHBOURS, largest=False).indices
        target = gather(clean, nearest).mean(dim=2) - frame.flatten(1, 2)
        condition = x[:, at].unsqueeze(2).expand(-1, -1, FRAME_NEIGHBOURS, -1)
        given = torch.cat([centred, condition], dim=-1).reshape(-1, 63)
        net = self.conv_p(given)
        for block in self.blocks:
            net = block(net, given)
        score = self.conv_out(torch.relu(self.bn_out(net)))
        return (score - target.reshape(-1, 3)).square().sum(dim=1).mean()
