import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from pointmend.errors import InputError
from pointmend.evaluation import figures
from pointmend.evaluation.figures import (
    Camera,
    ambient_shade,
    colour_map,
    draw_legend,
    estimate_normals,
    render,
    splat,
)

Floats = NDArray[np.float64]
SIZE = (80, 60)
RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def sphere(count: int, seed: int = 0) -> Floats:
    points = np.random.default_rng(seed).normal(size=(count, 3))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def pixels(picture: Image.Image) -> Floats:
    return np.asarray(picture, dtype=np.float64)


def naive_splat(
    places: Floats, nearness: Floats, radius: float, width: int, height: int
) -> tuple[NDArray[np.int64], Floats]:
    seen = np.full((height, width), -1)
    front = np.full((height, width), -np.inf)
    for row in range(height):
        for column in range(width):
            for point, (x, y) in enumerate(places):
                squared = (column + 0.5 - x) ** 2 + (row + 0.5 - y) ** 2
                if squared > radius**2:
                    continue
                depth = nearness[point] + np.sqrt(radius**2 - squared)
                if depth > front[row, column]:
                    seen[row, column], front[row, column] = point, depth
    return seen, front


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.floats(0.3, 4.0))
def test_splat_is_that_of_a_naive_depth_buffer(seed: int, count: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    # Some lie outside the picture, and reach into it or not.
    places = rng.uniform(-5.0, 20.0, (count, 2))
    nearness = rng.uniform(-3.0, 3.0, count)
    seen, front = splat(places, nearness, radius, 14, 11)
    expected_seen, expected_front = naive_splat(places, nearness, radius, 14, 11)
    np.testing.assert_array_equal(seen, expected_seen)
    np.testing.assert_allclose(front, expected_front)


def test_splat_in_small_portions_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    places, nearness = rng.uniform(0.0, 30.0, (200, 2)), rng.uniform(-9.0, 9.0, 200)
    whole = splat(places, nearness, 3.0, 30, 30)
    monkeypatch.setattr(figures, "_FRAGMENTS", 1)
    for one, other in zip(whole, splat(places, nearness, 3.0, 30, 30), strict=True):
        np.testing.assert_array_equal(one, other)


def test_camera_is_orthographic() -> None:
    points = sphere(50)
    camera = Camera.looking_at(points, direction=(0.3, 0.7, -0.5))
    axes = np.stack((camera.right, camera.up, camera.towards))
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    assert camera.up[2] > 0.0

    places, nearness, scale = camera.project(points, *SIZE)
    further = points + 2.0 * camera.towards
    nearer_places, nearer, _ = camera.project(further, *SIZE)
    np.testing.assert_allclose(nearer_places, places)
    np.testing.assert_allclose(nearer - nearness, 2.0 * scale)
    aside = camera.project(points + camera.right, *SIZE)[0] - places
    above = camera.project(points + camera.up, *SIZE)[0] - places
    np.testing.assert_allclose(aside, np.tile([scale, 0.0], (50, 1)), atol=1e-9)
    np.testing.assert_allclose(above, np.tile([0.0, -scale], (50, 1)), atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 5e6])
def test_camera_has_all_points_in_view_closely(offset: float) -> None:
    points = sphere(500) * [3.0, 2.0, 1.0] + offset
    places, _, _ = Camera.looking_at(points).project(points, *SIZE)
    low, high = places.min(axis=0), places.max(axis=0)
    assert (low > 0.0).all()
    assert (high < SIZE).all()
    assert ((high - low) / SIZE).max() > 0.9
    np.testing.assert_allclose(low + high, SIZE, atol=1e-3)


def test_camera_needs_a_way_up() -> None:
    with pytest.raises(InputError, match="shows nothing"):
        Camera.looking_at(sphere(5), direction=(0.0, 0.0, 2.0))


def test_nearer_point_hides_the_farther() -> None:
    camera = Camera.looking_at(np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]))
    points = np.stack((camera.towards, -camera.towards)) + camera.centre
    middle = (SIZE[1] // 2, SIZE[0] // 2)
    for colours, seen in (((RED, GREEN), 0), ((GREEN, RED), 1)):
        picture = pixels(render(points, np.array(colours), camera, SIZE, radius=0.3))
        assert picture[middle].argmax() == seen
        assert np.delete(picture[middle], seen).max() < 1.0


def test_points_are_where_the_camera_says_and_nothing_else_is() -> None:
    camera = Camera.looking_at(sphere(100))
    point = (0.5 * camera.right + 0.25 * camera.up + camera.centre)[None]
    picture = pixels(render(point, np.array([RED]), camera, SIZE, radius=0.1))
    coloured = np.argwhere(picture[..., 1] < 200.0)
    column, row = camera.project(point, *SIZE)[0][0]
    np.testing.assert_allclose(coloured.mean(axis=0) + 0.5, [row, column], atol=0.5)
    assert (picture[0, 0] == 255.0).all()


def test_edges_are_smooth() -> None:
    camera = Camera.looking_at(sphere(100))
    picture = pixels(render(camera.centre[None], np.array([RED]), camera, SIZE, radius=0.1))
    assert ((picture[..., 1] > 20.0) & (picture[..., 1] < 235.0)).any()


def test_nothing_is_a_white_picture() -> None:
    camera = Camera.looking_at(sphere(10))
    picture = pixels(render(np.empty((0, 3)), np.empty((0, 3)), camera, SIZE, radius=1.0))
    assert (picture == 255.0).all()


def test_colours_run_from_blue_to_orange_and_grow_lighter() -> None:
    near, far = colour_map(np.array([0.0, 1.0]))
    assert near.argmax() == 2
    assert far.argmax() == 0
    assert far[0] > far[1] > far[2]
    shares = np.linspace(0.0, 1.0, 101)
    linear = colour_map(shares) ** 2.2
    assert (np.diff(linear @ [0.2126, 0.7152, 0.0722]) > 0.0).all()
    np.testing.assert_array_equal(colour_map(np.array([-1.0, 2.0])), [near, far])


def test_normals_of_a_sphere_face_the_viewer() -> None:
    points = sphere(2000)
    towards = np.array([0.6, 0.0, 0.8])
    normals = estimate_normals(points, towards)
    assert (normals @ towards >= 0.0).all()
    assert np.median(np.abs(np.einsum("ni,ni->n", normals, points))) > 0.98
    np.testing.assert_array_equal(estimate_normals(points[:2], towards), [towards, towards])


def test_light_comes_from_the_upper_left() -> None:
    points = sphere(3000)
    camera = Camera.looking_at(points)
    picture = pixels(render(points, np.ones((3000, 3)), camera, SIZE, radius=0.1, normals=points))
    assert picture[20, 30].mean() > picture[40, 50].mean() + 30.0


def test_what_lies_behind_an_edge_is_darker() -> None:
    front = np.zeros((9, 20))
    front[:, 10:] = -50.0
    front[:, 18:] = -np.inf
    shade = ambient_shade(front, reach=3)
    assert (shade[:, :10] == 1.0).all()
    assert (shade[4, 10:13] < 0.8).all()
    assert (shade[:, 13:] == 1.0).all()


def test_depth_is_seen_in_the_picture() -> None:
    side = np.linspace(-1.0, 1.0, 60)
    sheet = np.stack(np.meshgrid(side, side, [0.0]), axis=-1).reshape(-1, 3)
    camera = Camera.looking_at(sheet, direction=(0.0, 0.0, -1.0), upwards=(0.0, 1.0, 0.0))
    step = sheet + [0.0, 0.0, 1.0] * (sheet[:, :1] < 0.0)
    up = np.tile([0.0, 0.0, 1.0], (len(step), 1))
    picture = pixels(render(step, np.ones_like(step), camera, SIZE, radius=0.05, normals=up))
    row = picture[SIZE[1] // 2].mean(axis=1)
    middle = SIZE[0] // 2
    assert row[middle + 1] < row[middle + 12] - 20.0
    assert row[middle - 12] == pytest.approx(row[middle + 12], abs=2.0)


@pytest.mark.parametrize("width", [420, 1200])
def test_a_legend_fits_into_its_picture(width: int) -> None:
    picture = Image.new("RGB", (width, 80), figures.BACKGROUND)
    draw_legend(picture, (width // 2, 30), 2.7, "distance")
    drawn = np.flatnonzero((pixels(picture) < 255.0).any(axis=(0, 2)))
    assert drawn[0] > 0
    assert drawn[-1] < width - 1
    assert len(drawn) > 250
