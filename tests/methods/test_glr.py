import numpy as np
import pytest
from numpy.typing import NDArray

from pointmend.evaluation.contract import Promise, check_denoiser
from pointmend.geometry.meshes import sample_surface
from pointmend.geometry.procedural import torus
from pointmend.geometry.triangles import points_to_mesh
from pointmend.methods import glr, local_frames
from pointmend.methods.glr import GraphLaplacian, match_patches, patch_weights, regularise
from pointmend.methods.local_frames import neighbourhoods, principal_axes
from pointmend.methods.method import Task

Float64 = NDArray[np.float64]
TIGHT = Promise(rotation=1e-4, translation=1e-4, scale=1e-4, permutation=1e-4, clean=0.05)


def noisy_torus(count: int, sigma: float = 0.02) -> Float64:
    clean, _ = sample_surface(torus(60, 30), count, np.random.default_rng(0))
    return clean + sigma * np.random.default_rng(1).standard_normal(clean.shape)


@pytest.mark.parametrize("level", [None, 0.03])
def test_it_keeps_the_contract(level: float | None) -> None:
    check_denoiser(lambda points: GraphLaplacian()(Task(points, level)), TIGHT)


@pytest.mark.parametrize("level", [0.01, 0.02, 0.03])
def test_it_brings_points_nearer_to_the_surface(level: float) -> None:
    noisy, mesh = noisy_torus(3000, level), torus(60, 30)
    found = GraphLaplacian()(Task(noisy, level))
    before, after = (points_to_mesh(each, mesh).squared.mean() for each in (noisy, found))
    assert np.sqrt(after) < 0.6 * np.sqrt(before)


def naive(points: Float64, patch: int, adjacent: int, fidelity: float) -> Float64:
    """The same system, assembled edge by edge and solved densely."""
    count = len(points)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    order = np.argsort(distance, axis=1)
    edges, costs = [], []
    for i in range(count):
        plane = points[order[i, :31]]
        normal = np.linalg.eigh(np.cov(plane.T))[1][:, 0]
        flatten = np.eye(3) - np.outer(normal, normal)
        for j in order[i, 1 : adjacent + 1]:
            rows = []
            for a in order[i, :patch]:
                here = points[a] - points[i]
                gaps = [np.linalg.norm(flatten @ (here - points[b] + points[j])) for b in order[j]]
                b = order[j][int(np.argmin(gaps[:patch]))]
                height = normal @ (here - points[b] + points[j])
                rows.append((int(a), int(b), float(height), normal))
            edges.append(rows)
            costs.append(np.mean([height**2 for _, _, height, _ in rows]))
    laplacian, pull = np.zeros((count, count)), np.zeros((count, 3))
    for rows, cost in zip(edges, costs):
        weight = np.exp(-cost / (2.0 * np.mean(costs)))
        for a, b, height, normal in rows:
            step = np.zeros(count)
            step[a] += 1.0
            step[b] -= 1.0
            laplacian += weight * np.outer(step, step)
            pull -= weight * height * np.outer(step, normal)
    mu = fidelity * np.diag(laplacian).mean()
    return points + np.linalg.solve(laplacian + mu * np.eye(count), pull)


def test_it_solves_what_loops_assemble(monkeypatch: pytest.MonkeyPatch) -> None:
    points = noisy_torus(120)
    expected = naive(points, 6, 4, 0.2)
    assert np.linalg.norm(expected - points, axis=1).mean() > 0.01
    assert np.allclose(regularise(points, 6, 4, 0.2), expected, atol=1e-7)
    monkeypatch.setattr(local_frames, "CHUNK_NEIGHBOURS", 700)
    assert np.allclose(regularise(points, 6, 4, 0.2), expected, atol=1e-7)


def test_patches_of_a_plane_agree_and_nothing_moves() -> None:
    points = np.random.default_rng(0).random((300, 3)) * [1.0, 1.0, 0.0]
    table = neighbourhoods(points, 30)
    axes = principal_axes(points[table] - points[:, None, :])
    partners, heights = match_patches(points, axes, table[:, :16], table[:, 1:9])
    assert partners.shape == heights.shape == (300, 8, 16)
    assert np.abs(heights).max() < 1e-12
    assert np.allclose(regularise(points, 16, 8, 0.2), points, atol=1e-12)


def test_the_centre_of_a_patch_is_matched_with_the_centre_of_the_other() -> None:
    points = noisy_torus(200)
    table = neighbourhoods(points, 30)
    axes = principal_axes(points[table] - points[:, None, :])
    partners, heights = match_patches(points, axes, table[:, :8], table[:, 1:5])
    assert np.array_equal(partners[:, :, 0], table[:, 1:5])
    assert np.abs(heights[:, :, 0]).max() == 0.0


def test_unlike_patches_weigh_little() -> None:
    heights = np.stack([np.zeros((1, 4)), np.full((1, 4), 1.0), np.full((1, 4), 9.0)])
    weights = patch_weights(heights)[:, 0]
    typical = 82.0 / 3.0
    assert np.allclose(weights, np.exp(-0.5 * np.array([0.0, 1.0, 81.0]) / typical))
    assert np.array_equal(patch_weights(np.zeros((2, 3, 4))), np.ones((2, 3)))


def test_more_fidelity_moves_points_less() -> None:
    points = noisy_torus(500)
    moves = [np.linalg.norm(regularise(points, 16, 8, mu) - points) for mu in (0.1, 1.0, 10.0)]
    assert moves[0] > moves[1] > moves[2] > 0.0


@pytest.mark.parametrize(("level", "times"), [(None, 2), (0.01, 2), (0.02, 3), (0.03, 4)])
def test_more_noise_takes_more_solutions(
    level: float | None, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def count(points: Float64, *settings: float) -> Float64:
        calls.append(settings)
        return points

    monkeypatch.setattr(glr, "regularise", count)
    GraphLaplacian()(Task(noisy_torus(50), level))
    assert calls == [(16, 8, 0.2)] * times
    calls.clear()
    GraphLaplacian(iterations=1)(Task(noisy_torus(50), level))
    assert len(calls) == 1
