from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pointmend.errors import InputError
from pointmend.evaluation.sheets import Panel, before_after_picture, contact_sheet

Floats = NDArray[np.float64]


def sphere(count: int, seed: int = 0) -> Floats:
    points = np.random.default_rng(seed).normal(size=(count, 3))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def pixels(picture: Image.Image) -> Floats:
    return np.asarray(picture, dtype=np.float64)


def test_a_sheet_has_a_line_per_shape_and_a_column_per_method(tmp_path: Path) -> None:
    near, far = np.zeros(300), np.full(300, 0.1)
    rows = [
        [Panel(sphere(300), far), Panel(sphere(300), near), Panel(sphere(300), far)],
        [Panel(5.0 * sphere(300), far), Panel(5.0 * sphere(300), far), Panel(sphere(0), near[:0])],
    ]
    path = tmp_path / "sheet.png"
    contact_sheet(rows, ["a", "b", "c"], path, label="distance", panel=(100, 80))
    values = pixels(Image.open(path))
    assert values.shape == (56 + 2 * 108 + 84, 300, 3)

    def middle(line: int, column: int) -> Floats:
        top, left = 56 + 108 * line + 28, 100 * column
        return np.asarray(values[top + 30 : top + 50, left + 40 : left + 60].mean(axis=(0, 1)))

    orange, blue = middle(0, 0), middle(0, 1)
    assert orange[0] > orange[2]
    assert blue[2] > blue[0]
    np.testing.assert_allclose(middle(1, 0), middle(1, 1))  # one scale, each line its own view
    np.testing.assert_allclose(middle(1, 2), 255.0)  # nothing was left of that cloud


def test_the_scale_can_be_chosen(tmp_path: Path) -> None:
    half = [[Panel(sphere(200), np.full(200, 0.5))]]
    for name, scale in (("own.png", None), ("wide.png", 5.0)):
        path = tmp_path / name
        contact_sheet(half, ["a"], path, label="", panel=(60, 60), full_scale=scale)
    own, wide = (
        pixels(Image.open(tmp_path / name))[100:130, 20:40].mean(axis=(0, 1))
        for name in ("own.png", "wide.png")
    )
    assert own[0] > own[2]
    assert wide[2] > wide[0]


def test_a_sheet_needs_a_title_for_each_column(tmp_path: Path) -> None:
    panel = Panel(sphere(3), np.zeros(3))
    with pytest.raises(InputError, match="title"):
        contact_sheet([[panel, panel]], ["one"], tmp_path / "a.png", label="")


def test_before_after_picture(tmp_path: Path) -> None:
    noisy, denoised = 1.05 * sphere(400), sphere(400)
    path = tmp_path / "picture.png"
    far, near = np.full(400, 0.05), np.zeros(400)
    before_after_picture(noisy, denoised, far, near, path, panel=(200, 160))
    with Image.open(path) as picture:
        assert (picture.format, picture.mode) == ("PNG", "RGB")
        values = pixels(picture)
    left, right = (
        values[100:220, 20:180].mean(axis=(0, 1)),
        values[100:220, 220:380].mean(axis=(0, 1)),
    )
    assert left[0] > left[2]
    assert right[2] > right[0]
    assert (values[:84].min(axis=(1, 2)) < 100.0).any(), "no titles"
    assert (values[-40:].min(axis=(1, 2)) < 100.0).any(), "no numbers at the legend"


def test_both_halves_share_one_scale(tmp_path: Path) -> None:
    points = sphere(300)
    distance = np.full(300, 0.02)
    before_after_picture(points, points, distance, distance, tmp_path / "a.png", panel=(200, 160))
    values = pixels(Image.open(tmp_path / "a.png"))[84:244]
    np.testing.assert_array_equal(values[:, :200], values[:, 200:])


def test_perfect_clouds_can_be_drawn(tmp_path: Path) -> None:
    points, zeros = sphere(30), np.zeros(30)
    before_after_picture(points, points, zeros, zeros, tmp_path / "a.png", panel=(90, 60))
    one = np.zeros((1, 3))
    before_after_picture(one, one, zeros[:1], zeros[:1], tmp_path / "b.png", panel=(90, 60))
    assert (tmp_path / "b.png").exists()


def test_pictures_need_points_and_distances(tmp_path: Path) -> None:
    points, path = sphere(3), tmp_path / "a.png"
    with pytest.raises(InputError, match="one distance for each point"):
        before_after_picture(points, points, np.zeros(2), np.zeros(3), path)
    with pytest.raises(InputError, match="no points"):
        before_after_picture(points[:0], points[:0], np.zeros(0), np.zeros(0), path)
    assert not path.exists()
