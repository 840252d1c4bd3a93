"""Network: pairs (v, x_i) as G sees them: where i lies, and what the planes of both say."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pointmend.geometry.local import LocalGeometry
from pointmend.geometry.planes import dot

from .features import HEIGHT_GAIN, OFFSET_GAIN


@dataclass(frozen=True)
class PointTable:
    """
    Everything pairs need to know of a point in one row, so that one gather fetches it.

    Attributes
    ----------
    rows : (M, C) positions (3), axes (9, if any), normals (3 S), heights (S) and the heights of
        curved surfaces (S - 1) of the planes, if any.
    framed : whether there are axes.
    scales : S >= 2, 0 without planes.
    """

    rows: Tensor
    framed: bool
    scales: int

    @classmethod
    def of(cls, cloud: LocalGeometry) -> PointTable:
        """The table of a cloud."""
        columns = [cloud.positions]
        if cloud.frames is not None:
            columns.append(cloud.frames.flatten(1))
        planes = cloud.planes
        if planes is not None:
            columns.extend((planes.normal.flatten(1), planes.height, planes.curved))
        scales = 0 if planes is None else planes.height.shape[1]
        return cls(torch.cat(columns, dim=1), cloud.frames is not None, scales)

    def look_up(self, index: Tensor) -> PointColumns:
        """What is known of some rows (...): one array per number, (C, ...)."""
        found = self.rows.index_select(0, index.reshape(-1)).t().contiguous()
        return PointColumns(found.reshape(-1, *index.shape), self.framed, self.scales)


@dataclass(frozen=True)
class PointColumns:
    """Columns (C, ...) of a `PointTable`."""

    columns: Tensor
    framed: bool
    scales: int

    @property
    def position(self) -> Tensor:
        """(3, ...)."""
        return self.columns[:3]

    @property
    def axes(self) -> Tensor | None:
        """(3, 3, ...) one axis after the other."""
        return self.columns[3:12].reshape(3, 3, *self.columns.shape[1:]) if self.framed else None

    @property
    def normals(self) -> Tensor:
        """(3, S, ...)."""
        first = 12 if self.framed else 3
        normals = self.columns[first : first + 3 * self.scales]
        return normals.reshape(self.scales, 3, *normals.shape[1:]).transpose(0, 1)

    @property
    def heights(self) -> Tensor:
        """(S, ...)."""
        return self.columns[1 - 2 * self.scales : 1 - self.scales]

    @property
    def curved(self) -> Tensor:
        """(S - 1, ...)."""
        return self.columns[1 - self.scales :]


class Pairs:
    """
    Points v (Q of them) and their k neighbours x_i; arrays over pairs are (..., k, Q).

    The points are the last axis: all that is done to a pair is then done to long rows at once.

    Attributes
    ----------
    away : (3, k, Q) v - x_i.
    axes : (3, 3, k, Q) of x_i, or None.
    normals : (3, S, k, Q) of i's S planes.
    heights : (V, k, Q) how far v must move along them; after the planes, if they vote, the same
        for the curved surfaces of all scales but the last, along the same normals.
    own_heights : (S, k, Q) the same for x_i and v's planes, all on the side of i's normals.
    agreement : (S, k, Q) |n_i . n_v|.
    """

    def __init__(self, table: PointTable, at: Tensor, neighbours: Tensor, *, curved: bool) -> None:
        """Look at points (Q,) and their neighbours (k, Q)."""
        v, i = table.look_up(at.unsqueeze(0)), table.look_up(neighbours)
        self.away = v.position - i.position
        self.axes = i.axes
        self.has_planes = table.scales > 0
        if not self.has_planes:
            return
        away = self.away.unsqueeze(1)
        cosine = dot(i.normals, v.normals)
        depth, own_depth = dot(i.normals, away), dot(v.normals, away)
        self.normals = i.normals
        self.heights = i.heights - depth
        self.own_heights = _on_side(cosine, v.heights + own_depth)
        self.agreement = cosine.abs()
        if curved:
            # Between two points of a curved surface the mean of their normals stands upright.
            between = 0.5 * (depth + _on_side(cosine, own_depth))
            self.heights = torch.cat([self.heights, i.curved - between[:-1]])

    def seen(self, *, mutual: bool) -> Tensor:
        """The pairs as numbers of order one, in the axes of x_i: (inputs, k, Q)."""
        inputs = [OFFSET_GAIN * self._in_axes(self.away)]
        if self.has_planes:
            inputs.append(HEIGHT_GAIN * self.heights)
            if mutual:
                inputs.extend((HEIGHT_GAIN * self.own_heights, self.agreement))
        return torch.cat(inputs)

    def _in_axes(self, vectors: Tensor) -> Tensor:
        """Vectors (3, k, Q) in the axes of x_i."""
        return vectors if self.axes is None else dot(self.axes.transpose(0, 1), vectors)

    def from_axes(self, vectors: Tensor) -> Tensor:
        """Vectors (3, k, Q) given in the axes of x_i, in those of the cloud."""
        return vectors if self.axes is None else dot(self.axes, vectors.unsqueeze(1))

    def mix(self, shares: Tensor) -> Tensor:
        """The displacements (3, k, Q) of v that the votes agree on by their shares (V, k, Q)."""
        ways = shares * self.heights
        scales = self.normals.shape[1]
        along = ways[:scales]
        if len(ways) > scales:
            along = torch.cat([along[:-1] + ways[scales:], along[-1:]])
        return (self.normals * along).sum(dim=1)


def _on_side(cosine: Tensor, height: Tensor) -> Tensor:
    """Heights along axes turned to the side of others, whose cosine with them is given."""
    return torch.where(cosine < 0, -height, height)
