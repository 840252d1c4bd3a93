"""Network: the whole of it, E, F, G and xi put together (Eq. 13)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pointmend.chunks import in_chunks
from pointmend.geometry.local import LocalGeometry, local_geometry
from pointmend.geometry.ways import ways_together

from .config import NetworkConfig
from .features import FeatureExtraction, turned
from .fusion import FeatureFusion
from .gradient import GradientPrediction
from .reach import touched

# Points fused at once by each thread when nothing is learned.
CHUNK = 1024

# A wall as thick as the noise is wide makes a spread larger by a tenth; the gain makes that heard.
COMPARED_GAIN = 4.0
LEAST_NOISE = 1e-5  # so that nothing is divided by an unknown noise's 0


class ScoreNetwork(nn.Module):
    """
    s(x^t | x^T): for every point asked for, the way to the surface (Eq. 13).

    Split in two calls, because the noisy input's features are needed at every step but made once:
    `features` is E, `scores` is F, G and xi.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.extraction = FeatureExtraction(config)
        self.fusion = FeatureFusion(config)
        self.gradient = GradientPrediction(config)

    def look(self, positions: Tensor, patch_points: int) -> LocalGeometry:
        """The geometry this network wants to see of (M, 3) positions in patches."""
        return local_geometry(
            positions,
            patch_points,
            self.config.neighbours,
            planes=self.config.planes,
            frames=self.config.frame == "point",
            scales=self.config.scales,
        )

    def spreads(self, cloud: LocalGeometry) -> Tensor | None:
        """How far points lie from their planes (M, S); None for a network not told the noise."""
        if not self.config.told_noise or cloud.planes is None:
            return None
        return cloud.planes.spread[:, :, 0]

    def compared(self, spreads: Tensor | None, noise: Tensor) -> Tensor | None:
        """
        How far the points of x^T lie from their planes, against the noise: (M, S + 1).

        On one side of a body that is as far as the noise is wide; where a thin wall has two, it is
        farther. Who does not know the noise cannot tell.

        Parameters
        ----------
        spreads : (M, S) what `spreads` says of x^T.
        noise : (M,) its sigma around each point, 0 where that is not known.

        Returns
        -------
        Logarithms at all S scales, and whether the noise is known: zeros where it is not; None
        where there are no spreads.
        """
        if spreads is None:
            return None
        known = (noise > 0.0).to(noise).unsqueeze(1)
        ratio = spreads / noise.clamp_min(LEAST_NOISE).unsqueeze(1)
        return known * torch.cat([COMPARED_GAIN * ratio.clamp(0.2, 5.0).log(), known], dim=1)

    def ways(self, cloud: LocalGeometry, back: Tensor) -> Tensor | None:
        """
        What the points of x^t have been moved by together: (M, WAY_SCALES, 3).

        Parameters
        ----------
        back : (M, 3) float64, from where they are to where they began.

        Returns
        -------
        None for a network that is not told.
        """
        return ways_together(back, cloud.neighbours) if self.config.told_ways else None

    def features(self, cloud: LocalGeometry, wanted: Tensor | None = None) -> Tensor:
        """E(x): (M, channels); zeros but for the wanted rows (U,) when they are given."""
        result: Tensor = self.extraction(cloud, wanted)
        if wanted is None:
            return result
        table = result.new_zeros(len(cloud.positions), result.shape[1])
        return table.index_copy(0, wanted, result)

    def needed(self, cloud: LocalGeometry, at: Tensor) -> Tensor:
        """The rows (U,) whose features the scores at some rows (Q,) depend on."""
        neighbours = cloud.neighbours[at, : self.config.gradient_neighbours]
        return touched(neighbours, len(cloud.neighbours))[0]

    def scores(
        self,
        cloud: LocalGeometry,
        current: Tensor,
        initial: Tensor,
        start: Tensor,
        time: Tensor,
        at: Tensor | None = None,
        told: Tensor | None = None,
        ways: Tensor | None = None,
    ) -> Tensor:
        """
        Scores s(x^t | x^T) of some points; nothing is fused for points no one asks about.

        Parameters
        ----------
        cloud : the current cloud x^t of M points.
        current : (M, channels) E(x^t).
        initial : (M, channels) E(x^T).
        start : (M, 3) x^T.
        time : (M,) t / tau of each point's patch.
        at : (Q,) rows asked for; all when None.
        told : (M, S + 1) what `compared` says of x^T and its noise; None when that is not known.
        ways : (M, WAY_SCALES, 3) what `ways` says of the way from x^T; None where there is none.

        Returns
        -------
        (Q, 3)
        """
        if at is None:
            at = torch.arange(len(cloud.positions), device=cloud.positions.device)
            rows = at
        else:
            rows = self.needed(cloud, at)
        fused = self.fused(cloud, current, initial, start, time, rows)
        result: Tensor = self.gradient(cloud, fused, rows, at, told, ways)
        return result

    def fused(
        self,
        cloud: LocalGeometry,
        current: Tensor,
        initial: Tensor,
        start: Tensor,
        time: Tensor,
        rows: Tensor,
    ) -> Tensor:
        """F of some rows (U,), (U, channels): what G asks neighbours for. Else as `scores`."""

        def fuse(part: slice) -> Tensor:
            of = rows[part]
            if self.config.frame == "point":
                # Absolute positions have no meaning in axes of one's own; the way come has.
                moved = (cloud.positions[of] - start[of]).unsqueeze(1)
                place = turned(moved, None if cloud.frames is None else cloud.frames[of]).squeeze(1)
            else:
                place = cloud.positions[of]
            fused: Tensor = self.fusion(
                place, time[of], current.index_select(0, of), initial.index_select(0, of)
            )
            return fused

        return in_chunks(fuse, rows, CHUNK)

    def forward(self, positions: Tensor, patch_points: int) -> Tensor:
        """Scores (M, 3) of noisy patches (M, 3) at their own time: s(x^T | x^T)."""
        cloud = self.look(positions, patch_points)
        features = self.features(cloud)
        time = torch.ones(len(positions), device=positions.device)
        return self.scores(cloud, features, features, cloud.positions, time)
