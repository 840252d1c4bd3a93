"""Viewer: a picture of a scan before and after, drawn by the functions the reports use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from pointmend.errors import InputError
from pointmend.evaluation.figures import BACKGROUND, INK, Camera, ball_radius, render
from pointmend.evaluation.sheets import Panel, contact_sheet
from pointmend.geometry.meshes import Mesh

from .scan import LABELS, Scan

Float64 = NDArray[np.float64]

_PANEL = (760, 600)
_HEAD = 64


def save_picture(
    scan: Scan, by: str, reference: Mesh | None, direction: Float64, path: Path
) -> None:
    """
    Write a PNG with the scan before and, if there is a result, after.

    Parameters
    ----------
    by : what points are coloured by.
    direction : (3,) the way the viewer looks.
    """
    if len(scan.rows) < 3:
        raise InputError("there are too few points to draw")
    times = [False] if scan.outcome is None else [False, True]
    titles = ["before", "after"][: len(times)] if scan.outcome else [scan.name]
    frames = [scan.frame(by, reference, after) for after in times]
    centred = [scan.place.scaled(frame.points) for frame in frames]
    camera = Camera.looking_at(centred[0], direction=_steady(direction))
    if frames[0].values is not None:
        panels = [Panel(p, f.values) for p, f in zip(centred, frames) if f.values is not None]
        top, label = scan.scale(by, reference), f"{LABELS[by]}, in the scan's units"
        contact_sheet(
            [panels], titles, path, label=label, panel=_PANEL, cameras=[camera], full_scale=top
        )
        return
    width, height = _PANEL
    picture = Image.new("RGB", (width * len(titles), _HEAD + height), BACKGROUND)
    draw, radius = ImageDraw.Draw(picture), ball_radius(centred[0])
    for column, (title, points, frame) in enumerate(zip(titles, centred, frames)):
        place = (column * width + width // 2, _HEAD // 2)
        draw.text(place, title, INK, ImageFont.load_default(26), anchor="mm")
        drawn = render(points, scan.base_colours(frame, 1.0), camera, _PANEL, radius)
        picture.paste(drawn, (column * width, _HEAD))
    picture.save(path, format="PNG", optimize=True)


def _steady(direction: Float64) -> tuple[float, float, float]:
    """The direction (3,) of a look, turned aside a little if it goes straight up or down."""
    x, y, z = (float(value) for value in direction)
    return (x, y + 1e-3 * abs(z) + 1e-9, z) if np.hypot(x, y) < 1e-6 * abs(z) + 1e-12 else (x, y, z)
