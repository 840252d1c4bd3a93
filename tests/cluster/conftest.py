from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pointmend import PointCloud, write
from pointmend.cluster.crew import AloneHere
from pointmend.cluster.plan import Plan, look_at_parts
from pointmend.cluster.run import PartReport, Run, Standing
from pointmend.denoising.options import SamplerOptions
from pointmend.denoising.settings import Settings
from pointmend.network.config import NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, save_model
from pointmend.scans.marks import Marks

COUNT = 1600
SIDE = 20.0


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network with random weights; its results mean nothing, but they are local."""
    config = NetworkConfig(
        channels=8, hidden=8, layers=1, blocks=1, frame="point", planes=True, graph_candidates=16
    )
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    torch.manual_seed(0)
    save_model(path, ScoreNetwork(config), ModelCard(config))
    return path


def terrain(number: int) -> PointCloud:
    """The number-th of some square fields in a row, noisy, in UTM coordinates, in no order."""
    rng = np.random.default_rng(number)
    positions = rng.uniform(0.0, SIDE, (COUNT, 3))
    positions[:, 0] += SIDE * number
    positions[:, 2] = np.sin(positions[:, 0] / 5.0) + 0.1 * rng.normal(size=COUNT)
    return PointCloud(
        np.round(positions, 3) + np.array([515_000.0, 4_918_000.0, 300.0]),
        {
            "intensity": rng.integers(0, 65535, COUNT).astype(np.uint16),
            "gps_time": rng.uniform(size=COUNT),
        },
    )


@pytest.fixture(scope="session")
def fields(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three neighbouring fields, in three formats."""
    folder = tmp_path_factory.mktemp("fields")
    paths = [folder / name for name in ("a.laz", "b.ply", "c.las")]
    for number, path in enumerate(paths):
        write(terrain(number), path)
    return paths


MakePlan = Callable[..., Plan]


def plan_for(
    sources: list[Path],
    folder: Path,
    marks: Marks | None = None,
    tile_points: int = 1000,
    **settings: Any,
) -> Plan:
    """A plan for some files, in tiles of a thousand points."""
    folder.mkdir(exist_ok=True)
    marks = marks or Marks()
    return Plan(
        parts=look_at_parts([(source, folder / source.name) for source in sources], marks),
        settings=Settings(**{"steps": 1, "careful": False, **settings}),
        options=SamplerOptions(tile_points=tile_points),
        marks=marks,
        model="tiny",
        device="cpu",
        threads=1,
    )


@pytest.fixture
def make_plan(tmp_path: Path) -> MakePlan:
    """Makes a plan for some files, with outputs in a folder of this test."""

    def make(sources: list[Path], out: str = "out", **choices: Any) -> Plan:
        return plan_for(sources, tmp_path / out, **choices)

    return make


def carry_out(plan: Plan, weights: Path, seen: list[Standing] | None = None) -> list[PartReport]:
    """Carry out a plan in this process, and note how it goes."""
    told = [] if seen is None else seen
    return Run(plan).carry_out(weights, lambda: nullcontext(AloneHere()), told.append)


def outputs(plan: Plan) -> list[bytes]:
    """What was written, byte by byte."""
    return [Path(part.target).read_bytes() for part in plan.parts]


@pytest.fixture(scope="session")
def reference(
    tmp_path_factory: pytest.TempPathFactory, fields: list[Path], weights: Path
) -> list[bytes]:
    """The three fields denoised as one cloud, in one process, without a break."""
    plan = plan_for(fields, tmp_path_factory.mktemp("straight"))
    carry_out(plan, weights)
    return outputs(plan)
