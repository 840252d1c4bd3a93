"""Viewer: one scan of a tab, and everything that is measured on it to be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import read
from pointmend.cloud.point_cloud import PointCloud
from pointmend.denoising.settings import Settings
from pointmend.errors import InputError
from pointmend.evaluation.noreference import plane_residuals
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.triangles import points_to_mesh
from pointmend.scans.budget import plan_file

from .colours import full_scale, light, original_colours, value_colours
from .thinning import Place, closing_radius, shown_rows

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import NoiseEstimate, Result

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

ORIGINAL = "original colour"
HEIGHT = "height"
ROUGHNESS = "roughness"
DISPLACEMENT = "displacement"
DISTANCE = "distance to the reference"

LABELS = {
    HEIGHT: "height above the lowest point",
    ROUGHNESS: "roughness: distance of neighbours to their plane",
    DISPLACEMENT: "how far points were moved",
    DISTANCE: "distance to the reference mesh",
}


@dataclass(frozen=True)
class Frame:
    """
    The shown points at some moment: before, after, or in the middle of a run.

    Attributes
    ----------
    points : (M, 3) in the scan's units.
    brightness : (M,) 0 to 1.
    values : (M,) that choose the colours; None for the original ones.
    """

    points: Float64
    brightness: Float64
    values: Float64 | None

    def towards(self, other: Frame, share: float) -> Frame:
        """What lies between this frame (0) and another one (1)."""

        def mix(a: Float64, b: Float64) -> Float64:
            return a + share * (b - a)

        values = None
        if self.values is not None and other.values is not None:
            values = mix(self.values, other.values)
        points = mix(self.points, other.points)
        return Frame(points, mix(self.brightness, other.brightness), values)


@dataclass(frozen=True)
class Outcome:
    """What a run has brought: its result, what was asked for, and how many seconds it took."""

    result: Result
    settings: Settings
    model: str
    seconds: float


@dataclass(eq=False)
class Scan:
    """
    One cloud of N points in the list of a tab, M of them shown.

    Attributes
    ----------
    name : in the list.
    source : path, or file name of an upload.
    tile_points : how the work is cut to fit into memory.
    estimate : its noise, when it is known.
    outcome : of the last run.
    ball : how large to draw points so that a surface closes up, in radii of the scan.
    """

    name: str
    source: str
    cloud: PointCloud
    tile_points: int
    estimate: NoiseEstimate | None = None
    outcome: Outcome | None = None
    _frames: dict[tuple[str, bool], Frame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = shown_rows(self.cloud.positions)
        shown = self.cloud.positions[self.rows]
        self.place = Place.around(shown)
        self.originals = original_colours(self.cloud, self.rows)
        self.lowest = float(shown[:, 2].min(initial=np.inf))
        self.ball = closing_radius(self.place.scaled(shown))

    @classmethod
    def open(cls, path: Path, name: str, source: str) -> Scan:
        """
        Read a scan.

        Raises
        ------
        InputError
            If it does not fit into memory as a whole.
        """
        budget = plan_file(path, None)
        if budget.streamed:
            raise InputError(
                f"{path}: {budget.points:,} points do not fit into memory; "
                "pointmend denoise cleans them from file to file"
            )
        return cls(name, source, read(path), budget.tile_points)

    @property
    def colourings(self) -> list[str]:
        """What its points can be coloured by, apart from a reference."""
        first = [] if self.originals is None else [ORIGINAL]
        last = [] if self.outcome is None else [DISPLACEMENT]
        return [*first, ROUGHNESS, HEIGHT, *last]

    @property
    def outliers(self) -> Bools:
        """(M,) which of the shown points the last run has flagged."""
        if self.outcome is None:
            return np.zeros(len(self.rows), dtype=bool)
        return self.outcome.result.outlier[self.rows]

    def finish(self, outcome: Outcome) -> None:
        """Take over what a run has brought."""
        self.outcome = outcome
        self.forget(DISPLACEMENT)
        self._frames = {key: frame for key, frame in self._frames.items() if not key[1]}

    def forget(self, by: str) -> None:
        """Measure again what points are coloured by: a reference has changed, or a result."""
        self._frames = {key: frame for key, frame in self._frames.items() if key[0] != by}

    def frame(self, by: str, reference: Mesh | None, after: bool) -> Frame:
        """The points before or after the last run, measured once."""
        key = (by, after)
        if key not in self._frames:
            positions = self.cloud.positions
            if after and self.outcome is not None:
                positions = self.outcome.result.points
            everybody = np.arange(len(positions))
            lit = next((f for (_, late), f in self._frames.items() if late == after), None)
            self._frames[key] = Frame(
                positions[self.rows],
                light(self.place.scaled(positions[self.rows])) if lit is None else lit.brightness,
                self._values(everybody, positions, self.rows, by, reference),
            )
        return self._frames[key]

    def updated(
        self, frame: Frame, rows: Int64, positions: Float64, by: str, reference: Mesh | None
    ) -> Frame:
        """
        A frame in which some points have moved: all of them, or those of a tile.

        Parameters
        ----------
        rows : (n,) which points of the cloud, each once.
        positions : (n, 3) where these are now.
        """
        _, shown, among = np.intersect1d(self.rows, rows, assume_unique=True, return_indices=True)
        points, brightness = frame.points.copy(), frame.brightness.copy()
        points[shown] = positions[among]
        brightness[shown] = light(self.place.scaled(positions[among]))
        values = self._values(rows, positions, among, by, reference)
        if values is None or frame.values is None:
            return Frame(points, brightness, frame.values)
        everyone = frame.values.copy()
        everyone[shown] = values
        return Frame(points, brightness, everyone)

    def _values(
        self, rows: Int64, positions: Float64, at: Int64, by: str, reference: Mesh | None
    ) -> Float64 | None:
        """
        What chooses the colours of points.

        Parameters
        ----------
        rows, positions : (n,) and (n, 3), points of the cloud that may be one another's neighbours.
        at : (m,) which of these are asked for; they are finite.

        Returns
        -------
        (m,) values, or None for the original colours.
        """
        points = positions[at]
        if by == ORIGINAL or len(points) == 0:
            return None
        if by == HEIGHT:
            return points[:, 2] - self.lowest
        if by == DISPLACEMENT and self.outcome is not None:
            return self.outcome.result.displacement[rows[at]]
        if by == DISTANCE and reference is not None:
            return np.asarray(np.sqrt(points_to_mesh(points, reference).squared))
        finite = np.flatnonzero(np.isfinite(positions).all(axis=1))
        around = self.place.scaled(positions[finite])
        return self.place.radius * plane_residuals(around, rows=np.searchsorted(finite, at))

    def scale(self, by: str, reference: Mesh | None) -> float:
        """The value of the last colour: one for before and after, so that they can be compared."""
        values = self.frame(by, reference, after=False).values
        return 1.0 if values is None else full_scale(values)

    def base_colours(self, frame: Frame, top: float) -> Float64:
        """Colours (M, 3) of a frame without light, 0 to 1; white where nothing chooses one."""
        if frame.values is not None:
            return value_colours(frame.values, top)
        return np.ones((len(self.rows), 3)) if self.originals is None else self.originals

    def roughness(self) -> tuple[float, float]:
        """Median roughness of the shown points before and after, in the scan's units."""
        before, after = (self.frame(ROUGHNESS, None, late).values for late in (False, True))
        if before is None or after is None:
            return 0.0, 0.0
        return float(np.median(before)), float(np.median(after))
