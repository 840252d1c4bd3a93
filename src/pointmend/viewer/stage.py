"""Viewer: the three-dimensional part of a page, on which a scan stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import viser
from numpy.typing import NDArray

from .colours import OUTLIER_COLOUR, painted
from .scan import Frame, Scan

Float64 = NDArray[np.float64]

# From where the camera looks at a scan that is opened, and its angle of view from top to bottom.
_CAMERA = np.array([1.0, -1.75, 0.95])
_FIELD_OF_VIEW = 0.85
# How much of a scan must be in view, in radii; few scans fill their sphere.
_IN_VIEW = 0.9
# Side by side, the two are so many radii apart.
_APART = 1.7
# Labels stand so many radii above what nearly all points stay below.
_LABEL_GAP = 0.35


@dataclass(frozen=True)
class Look:
    """
    How a scan is shown.

    Attributes
    ----------
    top : value of the last colour.
    size : of the points, relative to their spacing.
    side_by_side : show before and after beside each other.
    share : what is shown between before (0) and after (1).
    """

    top: float
    size: float = 1.0
    side_by_side: bool = False
    share: float = 1.0


class Stage:
    """What one tab shows."""

    def __init__(self, client: viser.ClientHandle) -> None:
        self._client = client
        self._handles: dict[str, viser.PointCloudHandle] = {}
        self._labels: list[viser.LabelHandle] = []
        self._scan: Scan | None = None
        self._apart = np.zeros(3)

    def clear(self) -> None:
        """Show nothing."""
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()
        self._scan = None
        self._name_both(False)

    def show(self, scan: Scan, before: Frame, after: Frame, look: Look) -> None:
        """Show a scan; the camera goes to one that was not there before."""
        if scan is not self._scan:
            self.clear()
            self._scan = scan
            self.look_at_all(look.side_by_side)
        if len(scan.rows) == 0:
            return
        with self._client.atomic():
            if look.side_by_side:
                self._put(scan, "before", before, look, -self._apart, flagged=False)
                self._put(scan, "after", after, look, self._apart, flagged=True)
            else:
                mixed = before.towards(after, look.share)
                flagged = look.share > 0.5
                self._put(scan, "after", mixed, look, np.zeros(3), flagged)
                if "before" in self._handles:
                    self._handles.pop("before").remove()
            self._name_both(look.side_by_side)

    def look_at_all(self, side_by_side: bool) -> None:
        """Put the camera where everything is in view."""
        camera = self._client.camera
        half_width = _IN_VIEW + (0.5 * _APART if side_by_side else 0.0)
        reach = max(_IN_VIEW, half_width / camera.aspect) / np.tan(0.5 * _FIELD_OF_VIEW)
        with self._client.atomic():
            camera.up_direction = np.array([0.0, 0.0, 1.0])
            # In this order: a camera that moves takes what it looks at along.
            camera.position = reach * _CAMERA / np.linalg.norm(_CAMERA)
            camera.look_at = np.zeros(3)
            camera.fov = _FIELD_OF_VIEW
        across = np.cross(-_CAMERA, [0.0, 0.0, 1.0])
        self._apart = 0.5 * _APART * across / np.linalg.norm(across)

    @property
    def direction(self) -> Float64:
        """The way the user looks, (3,)."""
        camera = self._client.camera
        return np.asarray(camera.look_at) - np.asarray(camera.position)

    def _name_both(self, wanted: bool) -> None:
        """Write above two clouds which is which."""
        if wanted == bool(self._labels):
            return
        for label in self._labels:
            label.remove()
        self._labels.clear()
        if wanted:
            heights = self._handles["after"].points[:, 2]
            above = np.array([0.0, 0.0, np.percentile(heights, 99.5) + _LABEL_GAP])
            self._labels = [
                self._client.scene.add_label(
                    f"/label/{text}",
                    text,
                    position=above + side * self._apart,
                    font_screen_scale=1.4,
                    anchor="bottom-center",
                )
                for text, side in (("before", -1.0), ("after", 1.0))
            ]

    def _put(
        self, scan: Scan, name: str, frame: Frame, look: Look, offset: Float64, flagged: bool
    ) -> None:
        """Draw a frame; points flagged as outliers stand out in the result."""
        base = scan.base_colours(frame, look.top)
        if flagged and scan.outliers.any():
            base = np.where(scan.outliers[:, None], OUTLIER_COLOUR, base)
        colours = painted(base, frame.brightness)
        points = scan.place.on_stage(frame.points)
        size = max(look.size * scan.ball, 1e-5)
        handle = self._handles.get(name)
        if handle is None:
            self._handles[name] = self._client.scene.add_point_cloud(
                f"/{name}",
                points,
                colours,
                point_size=size,
                point_shape="circle",
                precision="float32",
                point_shading="flat",
                position=offset,
            )
            return
        handle.points, handle.colors = points, colours
        handle.point_size, handle.position = size, offset
