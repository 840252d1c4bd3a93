"""Viewer: what a scan looks like in the middle of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pointmend.geometry.meshes import Mesh

from .scan import Frame, Scan

if TYPE_CHECKING:
    from pointmend.denoising.algorithm import Progress


class LiveFrames:
    """
    The frames of a run, each made from the one before by measuring only what has moved.

    Parameters
    ----------
    scan : what is being denoised, N points.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._current = scan.cloud.positions.copy()
        self._touched = np.zeros(len(scan.cloud), dtype=bool)
        self._last: tuple[str, Frame] | None = None

    def take(self, state: Progress) -> bool:
        """Take over the positions of a report, and tell whether it had some."""
        if state.positions is None:
            return False
        self._rows = np.arange(len(self._current)) if state.rows is None else state.rows
        self._current[self._rows] = state.positions
        self._touched[self._rows] = True
        return True

    def skip(self) -> None:
        """Nobody looks; the next frame is measured anew."""
        self._last = None

    def frame(self, by: str, reference: Mesh | None) -> Frame:
        """The shown points as the reports so far have left them."""
        if self._last is not None and self._last[0] == by:
            rows, base = self._rows, self._last[1]
        else:
            rows = np.flatnonzero(self._touched)
            base = self._scan.frame(by, reference, after=False)
        frame = self._scan.updated(base, rows, self._current[rows], by, reference)
        self._last = by, frame
        return frame
