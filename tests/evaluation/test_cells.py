from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from pointmend.errors import InputError
from pointmend.evaluation.cells import METRICS, CellStore
from pointmend.evaluation.metrics import chamfer, point_to_mesh
from pointmend.evaluation.testsets import Case
from pointmend.geometry.meshes import sample_surface
from pointmend.geometry.procedural import torus
from pointmend.methods.method import Contestant, Float64, Task


@dataclass
class Shifting:
    """Moves every point by a length, and counts how often it was asked."""

    length: float = 0.01
    name: str = "shifting"
    keeps_order: bool = True
    calls: int = 0

    def __call__(self, task: Task) -> Float64:
        self.calls += 1
        assert task.level == 0.02
        return task.points + self.length


@pytest.fixture(scope="module")
def case() -> Case:
    mesh = torus(40, 20)
    clean, _ = sample_surface(mesh, 400, np.random.default_rng(0))
    noisy = clean + 0.02 * np.random.default_rng(1).standard_normal(clean.shape)
    return Case("torus", 400, 0.02, "gaussian", noisy, clean, mesh)


def test_a_cell_holds_the_metrics_of_the_result(case: Case, tmp_path: Path) -> None:
    found = CellStore(tmp_path).measurement(Contestant(Shifting(), "s"), case)
    result = case.noisy + 0.01
    assert found.cd == pytest.approx(1e4 * chamfer(result, case.clean))
    surface = point_to_mesh(result, case.mesh)
    assert found.p2m == pytest.approx(1e5 * surface.total)
    assert found.p2m_points + found.p2m_faces == pytest.approx(found.p2m)
    assert 0.0 < found.worsened < 1.0
    assert found.cpu_seconds >= 0.0
    assert all(np.isfinite(getattr(found, name)) for name in METRICS)


def test_a_cell_is_measured_once(case: Case, tmp_path: Path) -> None:
    method = Shifting()
    store = CellStore(tmp_path)
    first = store.measurement(Contestant(method, "one"), case)
    assert CellStore(tmp_path).measurement(Contestant(method, "one"), case) == first
    assert method.calls == 1
    store.measurement(Contestant(method, "other settings"), case)
    store.measurement(Contestant(method, "one"), replace(case, noisy=case.noisy + 1e-9))
    assert method.calls == 3


def test_results_are_kept_where_asked_for(case: Case, tmp_path: Path) -> None:
    method = Shifting()
    store = CellStore(tmp_path)
    contestant = Contestant(method, "one")
    store.measurement(contestant, case)
    result = store.result(contestant, case)
    assert np.array_equal(result, case.noisy + 0.01)
    store.result(contestant, case)
    assert method.calls == 2


def test_a_broken_file_is_measured_again(case: Case, tmp_path: Path) -> None:
    method = Shifting()
    store = CellStore(tmp_path)
    store.measurement(Contestant(method, "one"), case)
    (path,) = tmp_path.rglob("*.json")
    path.write_text('{"measurement": {"cd": 1.0')
    store.measurement(Contestant(method, "one"), case)
    assert method.calls == 2


def test_order_lost_means_nothing_is_said_about_single_points(case: Case, tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    contestant = Contestant(Shifting(keeps_order=False), "one")
    for _ in range(2):  # measured, then read
        assert np.isnan(store.measurement(contestant, case).worsened)


def test_a_result_that_is_not_finite_is_an_error(case: Case, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not finite on torus"):
        CellStore(tmp_path).measurement(Contestant(Shifting(float("nan")), "nan"), case)
    assert not list(tmp_path.rglob("*.json"))
