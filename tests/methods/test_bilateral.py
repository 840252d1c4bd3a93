import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.geometry.meshes import sample_surface
from pointmend.geometry.procedural import box
from pointmend.methods.bilateral import (
    BilateralSmoothing,
    oriented_normals,
    project,
    side_along_tree,
)
from pointmend.methods.local_frames import neighbourhoods
from pointmend.methods.method import Task

Float64 = NDArray[np.float64]


def sphere(count: int) -> Float64:
    x = np.random.default_rng(0).standard_normal((count, 3))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_the_projection_is_the_formula_point_by_point() -> None:
    points = 1.0 + 0.02 * np.random.default_rng(1).standard_normal((100, 1))
    points = points * sphere(100)
    normals = sphere(100)
    table = neighbourhoods(points, 12)
    moved, turned = project(points, normals, table, 25.0)
    radius = 0.95 * max(np.linalg.norm(points[t[-1]] - points[t[0]]) for t in table)
    for i in (0, 33, 99):
        total, normal, height = 0.0, np.zeros(3), 0.0
        for j in table[i]:
            squared = np.sum((points[i] - points[j]) ** 2) / radius**2
            if squared >= 1.0:
                continue
            apart = (1.0 - normals[i] @ normals[j]) / (1.0 - np.cos(np.radians(25.0)))
            weight = np.exp(-4.0 * squared) * np.exp(-(apart**2))
            total += weight
            normal += weight * normals[j]
            height += weight * (points[i] - points[j]) @ normals[j]
        normal /= np.linalg.norm(normal)
        assert np.allclose(turned[i], normal)
        assert np.allclose(moved[i], points[i] - height / total * normal)


def test_normals_take_the_side_of_their_neighbours() -> None:
    points = sphere(800)
    found = oriented_normals(points, neighbourhoods(points, 16))
    outward = np.einsum("ni,ni->n", found, points)
    assert np.abs(outward).min() > 0.9
    assert len(np.unique(np.sign(outward))) == 1


def test_parts_that_do_not_touch_are_sided_each_on_its_own() -> None:
    points = np.concatenate([sphere(300), sphere(300) + 10.0])
    table = neighbourhoods(points, 12)
    signs = np.where(np.random.default_rng(2).random(600) < 0.5, -1.0, 1.0)
    normals = np.concatenate([sphere(300), sphere(300)]) * signs[:, None]
    sided = side_along_tree(normals, table)
    outward = np.einsum("ni,ni->n", sided, np.concatenate([sphere(300), sphere(300)]))
    assert abs(outward[:300].sum()) == pytest.approx(300.0)
    assert abs(outward[300:].sum()) == pytest.approx(300.0)


def test_edges_stay_sharper_than_with_a_wider_angle() -> None:
    mesh = box(8)
    clean, _ = sample_surface(mesh, 4000, np.random.default_rng(3))
    noisy = clean + 0.004 * np.random.default_rng(4).standard_normal(clean.shape)
    half = np.abs(mesh.vertices).max(axis=0)
    edge = np.sort(half - np.abs(clean), axis=1)[:, 1] < 0.04

    def off(points: Float64) -> float:
        return float(np.sqrt(np.mean(((np.abs(points[edge]) / half).max(axis=1) - 1.0) ** 2)))

    sharp = BilateralSmoothing(20, sharpness=20.0)(Task(noisy))
    round_ = BilateralSmoothing(20, sharpness=120.0)(Task(noisy))
    assert off(sharp) < 0.8 * off(round_)


def test_every_iteration_smooths_more() -> None:
    noisy = sphere(1500) * (1.0 + 0.03 * np.random.default_rng(5).standard_normal((1500, 1)))
    rough = [
        np.std(np.linalg.norm(BilateralSmoothing(24, iterations=n)(Task(noisy)), axis=1))
        for n in (1, 2)
    ]
    assert rough[1] < 0.9 * rough[0]
