"""Evaluation: pictures of clouds coloured by a number per point, drawn with numpy and Pillow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy.spatial import cKDTree

from pointmend.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

# Near is blue, far is orange; lightness rises from end to end, so that it also reads in grey.
_ANCHORS = ("#2f6cc0", "#4a86cc", "#749fcf", "#a3aeb6", "#d2b083", "#f2b052", "#ffb833")
BACKGROUND = (255, 255, 255)
INK = (33, 37, 41)
FAINT_INK = (108, 117, 125)
# Pictures are drawn this much larger and then reduced, which smooths every edge.
_OVERSAMPLING = 2
_NORMAL_NEIGHBOURS = 16
# Balls this much larger than the spacing of a noisy cloud close up to a surface.
_BALL_OVER_SPACING = 1.1
_BALL_PIXELS = (0.8, 6.0)
# Pixels of balls drawn at once; bounds the memory.
_FRAGMENTS = 1 << 20

# Room beside a legend for the numbers at its ends.
_LEGEND_MARGIN = 60


@dataclass(frozen=True)
class Camera:
    """
    An orthographic camera looking at a sphere.

    Attributes
    ----------
    right, up, towards : (3,) unit vectors; `towards` points from the scene to the viewer.
    centre : (3,) what is seen in the middle of the picture.
    half_width, half_height : how far the picture reaches from there, in the cloud's units.
    """

    right: Floats
    up: Floats
    towards: Floats
    centre: Floats
    half_width: float
    half_height: float

    @classmethod
    def looking_at(
        cls,
        points: Floats,
        direction: tuple[float, float, float] = (0.35, 0.62, -0.74),
        upwards: tuple[float, float, float] = (0.0, 0.0, 1.0),
        margin: float = 1.04,
    ) -> Camera:
        """
        The camera that has all points in view, closely.

        Parameters
        ----------
        points : (N, 3) finite, N >= 1.
        direction : the way the viewer looks.
        upwards : what points up in the picture; not along `direction`.
        margin : how much larger the view is than the cloud.
        """
        towards = -np.asarray(direction, dtype=np.float64)
        right = np.cross(np.asarray(upwards, dtype=np.float64), towards)
        if not np.linalg.norm(right) > 1e-9 * np.linalg.norm(towards):
            raise InputError(f"looking along {direction} with {upwards} up shows nothing")
        towards, right = towards / np.linalg.norm(towards), right / np.linalg.norm(right)
        up = np.cross(towards, right)
        seen = points @ np.stack((right, up, towards), axis=1)
        low, high = seen.min(axis=0), seen.max(axis=0)
        middle = 0.5 * (low + high)
        half = margin * np.maximum(0.5 * (high - low), 1e-9 + 1e-9 * np.abs(middle))
        centre = middle[0] * right + middle[1] * up + middle[2] * towards
        return cls(right, up, towards, centre, float(half[0]), float(half[1]))

    def project(self, points: Floats, width: int, height: int) -> tuple[Floats, Floats, float]:
        """
        Where points (N, 3) appear in a picture of width x height pixels.

        Returns
        -------
        Columns and rows (N, 2); nearness to the viewer (N,) in pixels; pixels per unit.
        """
        scale = 0.5 * min(width / self.half_width, height / self.half_height)
        local = points - self.centre
        columns = 0.5 * width + scale * (local @ self.right)
        rows = 0.5 * height - scale * (local @ self.up)
        return np.stack((columns, rows), axis=1), scale * (local @ self.towards), scale


def colour_map(shares: Floats) -> Floats:
    """
    Colours from blue (0) to orange (1), ever lighter; (N,) -> (N, 3) in 0 to 1.

    Values outside 0 to 1 take the colour of the end they lie beyond.
    """
    anchors = np.array([[int(code[i : i + 2], 16) for i in (1, 3, 5)] for code in _ANCHORS]) / 255.0
    places = np.linspace(0.0, 1.0, len(anchors))
    return np.stack([np.interp(shares, places, channel) for channel in anchors.T], axis=-1)


def estimate_normals(points: Floats, towards: Floats) -> Floats:
    """
    Unit normals (N, 3) by plane fits, facing the viewer.

    Parameters
    ----------
    points : (N, 3) finite.
    towards : (3,) the direction of the viewer.
    """
    if len(points) < 3:
        return np.tile(towards, (len(points), 1))
    _, index = cKDTree(points).query(points, k=min(_NORMAL_NEIGHBOURS, len(points)))
    around = points[index] - points[index].mean(axis=1, keepdims=True)
    _, axes = np.linalg.eigh(np.einsum("nki,nkj->nij", around, around))
    normals: Floats = axes[:, :, 0]
    return np.where((normals @ towards < 0.0)[:, None], -normals, normals)


def splat(
    places: Floats, nearness: Floats, radius: float, width: int, height: int
) -> tuple[Ints, Floats]:
    """
    Draw points as small balls into a depth buffer.

    Parameters
    ----------
    places : (N, 2) column and row of each point, in pixels.
    nearness : (N,) larger is nearer to the viewer, in pixels.
    radius : of the balls, in pixels.

    Returns
    -------
    (height, width) index of the point seen in each pixel, -1 where there is none, and the nearness
    of what is seen there, -inf where there is nothing.
    """
    reach = int(np.ceil(radius))
    offset = np.arange(-reach, reach + 1)
    across, down = (grid.ravel() for grid in np.meshgrid(offset, offset))
    seen = np.full(height * width, -1, dtype=np.int64)
    front = np.full(height * width, -np.inf)
    together = max(1, _FRAGMENTS // len(across))
    for first in range(0, len(places), together):
        place = places[first : first + together]
        corner = np.floor(place).astype(np.int64)
        column, row = corner[:, :1] + across, corner[:, 1:] + down
        squared = (column + 0.5 - place[:, :1]) ** 2 + (row + 0.5 - place[:, 1:]) ** 2
        drawn = squared <= radius**2
        drawn &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
        point = first + np.nonzero(drawn)[0]
        depth = nearness[point] + np.sqrt(radius**2 - squared[drawn])
        pixel = (row * width + column)[drawn]
        order = np.argsort(depth)
        order = order[depth[order] > front[pixel[order]]]
        # Of several values given to one element, numpy keeps the last: the nearest.
        seen[pixel[order]], front[pixel[order]] = point[order], depth[order]
    return seen.reshape(height, width), front.reshape(height, width)


def ambient_shade(front: Floats, reach: int, strength: float = 1.0) -> Floats:
    """
    Darken what has nearer things beside it, so that depth is seen without any light.

    Parameters
    ----------
    front : (height, width) nearness in pixels, -inf where there is nothing.
    reach : distance in pixels at which neighbours are looked at.

    Returns
    -------
    (height, width) factors in 0 to 1.
    """
    height, width = front.shape
    padded = np.pad(front, reach, constant_values=-np.inf)
    blocked = np.zeros_like(front)
    ways = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    known = np.isfinite(front)
    base = np.where(known, front, 0.0)
    for down, across in ways:
        rows = slice(reach + down * reach, reach + down * reach + height)
        columns = slice(reach + across * reach, reach + across * reach + width)
        other = padded[rows, columns]
        higher = np.where(np.isfinite(other) & known, other - base, 0.0)
        blocked += np.clip(higher / (4.0 * reach), 0.0, 1.0)
    return np.exp(-strength * blocked / len(ways))


def render(
    points: Floats,
    colours: Floats,
    camera: Camera,
    size: tuple[int, int],
    radius: float,
    normals: Floats | None = None,
) -> Image.Image:
    """
    A picture of a cloud.

    Parameters
    ----------
    points : (N, 3) finite.
    colours : (N, 3) in 0 to 1.
    size : width and height in pixels.
    radius : of the balls drawn for points, in the cloud's units.
    normals : (N, 3) for the light; estimated when None.
    """
    width, height = (_OVERSAMPLING * side for side in size)
    canvas = np.tile(np.array(BACKGROUND, dtype=np.float64), (height, width, 1))
    if len(points):
        places, nearness, scale = camera.project(points, width, height)
        least, most = (_OVERSAMPLING * limit for limit in _BALL_PIXELS)
        ball = min(max(scale * radius, least), most)
        seen, front = splat(places, nearness, ball, width, height)
        if normals is None:
            normals = estimate_normals(points, camera.towards)
        shaded = np.clip(colours * _light(normals, camera)[:, None], 0.0, 1.0)
        shade = ambient_shade(front, reach=3 * _OVERSAMPLING)
        hit = seen >= 0
        canvas[hit] = 255.0 * shaded[seen[hit]] * shade[hit][:, None]
    large = Image.fromarray(np.rint(canvas).astype(np.uint8))
    return large.resize(size, Image.Resampling.LANCZOS)


def ball_radius(points: Floats) -> float:
    """How large to draw points (N, 3) so that a surface closes up, in the cloud's units."""
    if len(points) < 2:
        return 0.0
    return _BALL_OVER_SPACING * float(np.median(cKDTree(points).query(points, k=2)[0][:, 1]))


def _light(normals: Floats, camera: Camera) -> Floats:
    """How bright each normal (N, 3) is lit: a lamp at the viewer's upper left; (N,)."""
    lamp = 0.75 * camera.towards + 0.5 * camera.up - 0.4 * camera.right
    lamp = lamp / np.linalg.norm(lamp)
    return np.asarray(0.5 + 0.62 * np.clip(normals @ lamp, 0.0, 1.0))


def draw_legend(picture: Image.Image, place: tuple[int, int], top: float, label: str) -> None:
    """A colour bar from 0 to `top`, centred at `place` (its middle, its upper edge)."""
    middle, upper = place
    length, thickness = max(2, min(420, picture.width - 2 * _LEGEND_MARGIN)), 14
    left = middle - length // 2
    bar = colour_map(np.linspace(0.0, 1.0, length))
    strip = np.tile(np.rint(255.0 * bar).astype(np.uint8), (thickness, 1, 1))
    picture.paste(Image.fromarray(strip), (left, upper))
    draw = ImageDraw.Draw(picture)
    small = ImageFont.load_default(16)
    for share in (0.0, 0.5, 1.0):
        text = "0" if share == 0.0 else f"{share * top:.2g}"
        text = f"{text} or more" if share == 1.0 else text
        where = left + round(share * (length - 1))
        draw.line((where, upper + thickness, where, upper + thickness + 4), FAINT_INK)
        draw.text((where, upper + thickness + 8), text, INK, small, anchor="mt")
    draw.text((middle, upper - 8), label, INK, small, anchor="mb")
