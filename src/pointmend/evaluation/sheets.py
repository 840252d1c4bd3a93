"""Evaluation: several clouds in one picture, coloured on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from pointmend.errors import InputError

from .figures import (
    BACKGROUND,
    FAINT_INK,
    INK,
    Camera,
    ball_radius,
    colour_map,
    draw_legend,
    render,
)

Floats = NDArray[np.float64]

_HEAD, _FOOT, _CAPTION = 56, 84, 28
# A few far points must not push all others into one colour.
_FULL_SCALE_PERCENTILE = 98


@dataclass(frozen=True)
class Panel:
    """
    One cloud of a sheet.

    Attributes
    ----------
    points : (N, 3) finite.
    values : (N,) that choose the colours, e.g. distances to the true surface.
    caption : stands above the cloud, e.g. its error.
    """

    points: Floats
    values: Floats
    caption: str = ""


def contact_sheet(
    rows: Sequence[Sequence[Panel]],
    titles: Sequence[str],
    path: str | Path,
    *,
    label: str,
    panel: tuple[int, int] = (420, 340),
    cameras: Sequence[Camera] | None = None,
    full_scale: float | None = None,
) -> None:
    """
    Write a PNG with one line per shape and one column per method.

    Parameters
    ----------
    rows : panels, all lines equally long. A line's first panel decides how all of it is seen.
    titles : one per column.
    path : where to write.
    label : what the colours mean.
    panel : width and height of each cloud in pixels.
    cameras : one per line; by default each has its first cloud in view.
    full_scale : the value of the last colour, one for the whole sheet; chosen by the first column
        when None.
    """
    if not rows or any(len(row) != len(titles) for row in rows):
        raise InputError("a picture needs one title for each of its columns")
    for one in (each for row in rows for each in row):
        if len(one.points) != len(one.values):
            raise InputError("a picture needs one distance for each point")
    if any(len(row[0].points) == 0 for row in rows):
        raise InputError("there are no points to draw")
    top = full_scale or column_scale(rows, 0) or 1.0
    width, height = panel
    line = _CAPTION + height
    size = (len(titles) * width, _HEAD + len(rows) * line + _FOOT)
    picture = Image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(picture)
    for column, title in enumerate(titles):
        middle = column * width + width // 2
        draw.text((middle, 32), title, INK, ImageFont.load_default(26), anchor="mm")
    for number, row in enumerate(rows):
        camera = cameras[number] if cameras else Camera.looking_at(row[0].points)
        radius = ball_radius(row[0].points)
        upper = _HEAD + number * line
        for column, one in enumerate(row):
            left = column * width
            colours = colour_map(one.values / top)
            drawn = render(one.points, colours, camera, panel, radius)
            picture.paste(drawn, (left, upper + _CAPTION))
            place = (left + width // 2, upper + _CAPTION // 2)
            draw.text(place, one.caption, FAINT_INK, ImageFont.load_default(18), anchor="mm")
    draw_legend(picture, (size[0] // 2, size[1] - _FOOT + 26), top, label)
    picture.save(path, format="PNG", optimize=True)


def column_scale(rows: Sequence[Sequence[Panel]], column: int) -> float:
    """A value that nearly all points of a column stay below."""
    values = np.concatenate([row[column].values for row in rows])
    return float(np.percentile(values, _FULL_SCALE_PERCENTILE)) or float(values.max(initial=0.0))


def before_after_picture(
    noisy: Floats,
    denoised: Floats,
    distance_before: Floats,
    distance_after: Floats,
    path: str | Path,
    *,
    titles: tuple[str, str] = ("before", "after"),
    label: str = "distance to the true surface",
    camera: Camera | None = None,
    panel: tuple[int, int] = (620, 470),
) -> None:
    """
    Write two clouds side by side as a PNG, coloured by distance on one scale.

    Parameters
    ----------
    noisy, denoised : (N, 3) and (M, 3) finite.
    distance_before, distance_after : (N,) and (M,) of each point, in any unit.
    path : where to write.
    titles : what stands above the two.
    label : what stands at the colour bar.
    camera : by default one that has the noisy cloud in view.
    panel : width and height of each half in pixels.
    """
    pair = [
        Panel(points, distance, f"RMS distance {root_mean_square(distance):.3g}")
        for points, distance in ((noisy, distance_before), (denoised, distance_after))
    ]
    cameras = None if camera is None else [camera]
    contact_sheet([pair], titles, path, label=label, panel=panel, cameras=cameras)


def root_mean_square(values: Floats) -> float:
    """The root mean square of numbers (N,); 0 of none."""
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
