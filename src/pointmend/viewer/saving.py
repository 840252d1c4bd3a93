"""Viewer: the result of a run as a file, as `pointmend denoise` would have written it."""

from __future__ import annotations

from pathlib import Path

from pointmend.cloud.files import format_of, write
from pointmend.cloud.left_behind import all_losses
from pointmend.scans.marks import Marks, check_marks, marked

from .scan import Outcome, Scan


def save_result(
    scan: Scan, outcome: Outcome, path: Path, write_displacement: bool
) -> tuple[str, ...]:
    """
    Write a scan at its new positions, with all attributes and marks.

    Parameters
    ----------
    outcome : of one of the scan's runs.
    path : its suffix says in which format.
    write_displacement : add an attribute with how far each point moved.

    Returns
    -------
    What the format cannot hold, a few words each.
    """
    marks = Marks(write_displacement, outliers=outcome.settings.outliers is not None)
    check_marks(scan.cloud, marks, Path(scan.source))
    result = outcome.result
    moved = scan.cloud.with_positions(result.points)
    cloud = marked(moved, result.displacement, result.outlier, marks)
    write(cloud, path)
    return all_losses(cloud, format_of(path))
