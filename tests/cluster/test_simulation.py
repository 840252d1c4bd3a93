from dataclasses import replace

import numpy as np
import pytest

from pointmend.cluster.simulation import Cluster, Costs, Job, forecast

NOTHING = Costs(0, 0, 0, 0, 0, 0, 0, 0, 0)
FAST = 1e30


def test_work_is_shared_evenly_where_nothing_else_costs() -> None:
    costs = replace(NOTHING, region=1e-4)
    job = Job(150_000_000)
    one = forecast(job, Cluster(1, FAST), costs)
    assert one.seconds == pytest.approx(one.cpu)
    # A tile of a surface is computed with a strip of 48 points on every side.
    expected = 1e-4 * 150e6 * (np.sqrt(150_000) + 96) ** 2 / 150_000
    assert one.cpu == pytest.approx(expected, rel=1e-4)
    assert job.halo_share == pytest.approx(1 - 150e6 * 1e-4 / expected, rel=1e-3)
    ten = forecast(job, Cluster(10, FAST), costs)
    assert ten.seconds == pytest.approx(one.seconds / 10, rel=0.01)
    assert ten.efficiency == pytest.approx(1.0, abs=0.01)
    quick = forecast(job, Cluster(10, FAST, speed=2.0), costs)
    assert quick.seconds == pytest.approx(ten.seconds / 2)


def test_more_workers_than_tiles_gain_nothing() -> None:
    costs = replace(NOTHING, region=1e-4)
    few, many = (forecast(Job(1_500_000), Cluster(n, FAST), costs) for n in (10, 1000))
    assert few.seconds == many.seconds
    assert many.efficiency < 0.02


def test_the_scheduler_is_a_limit_of_its_own() -> None:
    """A task a second can be handed out: with tasks of 15 s, 15 workers are all it can feed."""
    costs = replace(NOTHING, region=1e-4 / 1.559, task=1.0)
    found = {n: forecast(Job(150_000_000), Cluster(n, FAST), costs) for n in (5, 15, 100)}
    assert found[5].stages["denoising"] == pytest.approx(1000 * 16.0 / 5, rel=0.01)
    assert found[15].stages["denoising"] == pytest.approx(1000 * 16.0 / 15, rel=0.05)
    assert found[100].stages["denoising"] == pytest.approx(1000.0, rel=0.05)
    assert found[100].scheduler == pytest.approx(1.0, abs=0.05)


def test_the_file_system_is_shared_by_all() -> None:
    job, costs = Job(150_000_000), replace(NOTHING, region=1e-4)
    slow = forecast(job, Cluster(1000, disk=1e6), costs)
    moved = (9 * 32 + 33) * 150e6
    assert slow.stages["denoising"] == pytest.approx(moved / 1e6, rel=0.02)
    assert slow.disk == pytest.approx(1.0, abs=0.02)


def test_small_tiles_cost_more() -> None:
    costs = replace(NOTHING, region=1e-4)
    large, small = (
        forecast(Job(150_000_000, tile_points=n), Cluster(1, FAST), costs)
        for n in (150_000, 10_000)
    )
    expected = ((np.sqrt(10_000) + 96) ** 2 / 10_000) / ((np.sqrt(150_000) + 96) ** 2 / 150_000)
    assert small.cpu / large.cpu == pytest.approx(expected, rel=1e-3)


def test_a_single_tile_has_no_halo() -> None:
    assert Job(100_000).halo_share == 0.0
    found = forecast(Job(100_000), Cluster(4, FAST), replace(NOTHING, region=1e-4, surveying=3.0))
    assert found.seconds == pytest.approx(13.0)
    assert found.stages["surveying"] == 3.0
