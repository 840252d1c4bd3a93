"""Network: E, the features of every point by dynamic graph convolutions (Section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pointmend.chunks import in_chunks, pick, take
from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import Planes

from .config import NetworkConfig
from .dense import Dense
from .edges import EdgeConvolution, feature_graph
from .reach import reach_of

# Lengths in the network's frame are around 0.01-0.03; these bring them to order one.
OFFSET_GAIN = 20.0
HEIGHT_GAIN = 30.0
TAIL_GAIN = 3.0
GAUSSIAN_TAILS = 3.0**0.5

# Points handled at once by each thread when nothing is learned: their edges stay in the cache.
CHUNK = 512


def turned(vectors: Tensor, frames: Tensor | None) -> Tensor:
    """Vectors (M, k, 3) in the axes (M, 3, 3) of their points; as they are without frames."""
    return vectors if frames is None else torch.bmm(vectors, frames.transpose(1, 2))


class FeatureExtraction(nn.Module):
    """
    E(x), (M, channels): what the surroundings of each point look like.

    The stack is DGCNN's: every layer searches its neighbours anew by feature similarity. The
    first layer sees positions (the paper), or, for a local network, the offsets to the spatial
    neighbours; planes add what moving least squares would know.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width = config.channels
        if config.graph_candidates:
            self.offsets = OffsetConvolution(config.offset_channels, width)
        else:
            self.positions = EdgeConvolution(3, width)
        if config.planes:
            self.planes = nn.Sequential(
                Dense(config.plane_inputs, width),
                nn.ReLU(inplace=True),
                Dense(width, width),
            )
        self.convolutions = nn.ModuleList(
            ResidualEdgeConvolution(width) for _ in range(config.layers)
        )
        self.output = Dense(width * (config.layers + 1), width)

    def forward(self, cloud: LocalGeometry, wanted: Tensor | None = None) -> Tensor:
        """
        Features of some points.

        Parameters
        ----------
        wanted : (U,) rows of the cloud; all when None. A local E computes nothing that they do
            not depend on.

        Returns
        -------
        (U, channels)
        """
        if self.config.graph_candidates:
            return self._local_features(cloud, wanted)
        graph = cloud.neighbours[:, 1 : self.config.graph_neighbours + 1]
        x = self.positions(OFFSET_GAIN / 4 * cloud.positions, graph)
        if self.config.planes and cloud.planes is not None:
            x = x + self.planes(plane_inputs(cloud.planes, cloud.frames, self.config.curved))
        stack = [x]
        for convolution in self.convolutions:
            x = convolution(x, self._graph(x, cloud))
            stack.append(x)
        return self._output([take(layer, wanted) for layer in stack])

    def _local_features(self, cloud: LocalGeometry, wanted: Tensor | None) -> Tensor:
        """The same with neighbours chosen among the nearest, for what `wanted` depends on only."""
        config = self.config
        candidates = cloud.neighbours[:, : config.graph_candidates]
        reach = reach_of(candidates, wanted, config.layers)

        def look(rows: slice) -> Tensor:
            inputs = pick(reach.inputs, rows)
            near = cloud.neighbours[inputs, : config.offset_neighbours]
            frames = None if cloud.frames is None else cloud.frames[inputs]
            seen: Tensor = self.offsets(cloud.positions, near, frames)
            if config.planes and cloud.planes is not None:
                planes = cloud.planes.rows(inputs)
                seen = seen + self.planes(plane_inputs(planes, frames, config.curved))
            return seen

        x = in_chunks(look, candidates if reach.inputs is None else reach.inputs, CHUNK)
        stack = [x]
        for convolution, near in zip(self.convolutions, reach.candidates):
            own = None if reach.inputs is None else near[:, 0]
            x = convolution(x, self._graph(x, cloud, near), own)
            stack = [take(earlier, own) for earlier in stack] + [x]
        return self._output(stack)

    def _output(self, stack: Sequence[Tensor]) -> Tensor:
        """What all layers (M, channels) say together: (M, channels)."""

        def combine(rows: slice) -> Tensor:
            result: Tensor = self.output(torch.cat([layer[rows] for layer in stack], dim=1))
            return result

        return in_chunks(combine, stack[0], CHUNK)

    def _graph(self, x: Tensor, cloud: LocalGeometry, near: Tensor | None = None) -> Tensor:
        """The dynamic graph of features x."""
        return feature_graph(x, self.config.graph_neighbours, cloud.patch_points, near)


class OffsetConvolution(nn.Module):
    """First layer of a local E: a two-layer edge MLP on offsets, then maximum and mean."""

    def __init__(self, hidden: int, outputs: int) -> None:
        super().__init__()
        self.edge = nn.Sequential(
            Dense(3, hidden), nn.ReLU(inplace=True), Dense(hidden, hidden), nn.ReLU()
        )
        self.output = Dense(2 * hidden, outputs)

    def forward(self, positions: Tensor, neighbours: Tensor, frames: Tensor | None) -> Tensor:
        """
        Look at the neighbours' offsets.

        Parameters
        ----------
        positions : (M, 3).
        neighbours : (U, k) rows of positions, the point itself first.
        frames : (U, 3, 3) axes of the points' own.

        Returns
        -------
        (U, outputs)
        """
        offsets = positions[neighbours] - positions[neighbours[:, :1]]
        edges = self.edge(OFFSET_GAIN * turned(offsets, frames))
        result: Tensor = self.output(torch.cat([edges.amax(dim=1), edges.mean(dim=1)], dim=1))
        return result


class ResidualEdgeConvolution(nn.Module):
    """x + W relu(edge convolution of the normalised x): (M, C) -> (M, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.convolution = EdgeConvolution(width, width)
        self.output = Dense(width, width)

    def forward(self, x: Tensor, graph: Tensor, own: Tensor | None = None) -> Tensor:
        """Pass (M, C) features over a graph of (U, k) rows, for some rows (U,) or for all."""
        change: Tensor = self.output(self.convolution(self.norm(x), graph, own).relu_())
        return change.add_(take(x, own))


def tails_input(planes: Planes) -> Tensor:
    """The tails (M, T) as numbers of order one, 0 for Gaussian noise."""
    return TAIL_GAIN * (planes.tails - GAUSSIAN_TAILS)


def plane_inputs(planes: Planes, frames: Tensor | None, curved: bool) -> Tensor:
    """
    The planes as numbers of order one, in the points' own axes: (M, 15 S + ...).

    Per scale: offset to the centre (3), height (1), height in standard deviations (1), the
    entries of n n^T (6; a normal has no sign), spreads (3), flatness (1). The heights of the
    curved surfaces, when they take part, are S - 1 more columns, the tails T more.
    """
    normal = turned(planes.normal, frames)
    n0, n1, n2 = normal.unbind(-1)
    smallest, total = planes.spread[..., 0], planes.spread.norm(dim=-1)
    columns = [
        *(OFFSET_GAIN * turned(planes.offset, frames)).unbind(-1),
        HEIGHT_GAIN * planes.height,
        planes.height / (smallest + 1e-3),
        *(n0 * n0, n0 * n1, n0 * n2, n1 * n1, n1 * n2, n2 * n2),
        *(HEIGHT_GAIN * planes.spread).unbind(-1),
        3.0 * smallest / (total + 1e-6),
    ]
    if curved:
        columns.append(HEIGHT_GAIN * planes.curved)
    columns.append(tails_input(planes))
    return torch.cat(columns, dim=1)
