from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pointmend import PointCloud, write
from pointmend.cli.main import main
from pointmend.network.config import NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, save_model

COUNT = 300


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A network with random weights, small enough to be quick; its results mean nothing."""
    config = NetworkConfig(
        channels=8,
        hidden=8,
        layers=1,
        blocks=1,
        planes=True,
        frame="point",
        graph_candidates=16,
    )
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    torch.manual_seed(0)
    save_model(path, ScoreNetwork(config), ModelCard(config))
    return str(path)


@pytest.fixture
def cloud() -> PointCloud:
    """A noisy sphere with one row that is not finite, one repeated row, and attributes."""
    rng = np.random.default_rng(1)
    positions = rng.normal(size=(COUNT, 3))
    positions /= np.linalg.norm(positions, axis=1, keepdims=True)
    positions += 0.02 * rng.normal(size=positions.shape)
    positions[5] = np.nan
    positions[8] = positions[7]
    attributes: dict[str, NDArray[Any]] = {
        "red": rng.integers(0, 256, COUNT).astype(np.uint8),
        "intensity": rng.uniform(size=COUNT).astype(np.float32),
        "class": rng.integers(0, 9, COUNT).astype(np.int32),
    }
    return PointCloud(positions, attributes)


@pytest.fixture
def scan(tmp_path: Path, cloud: PointCloud) -> Path:
    """That cloud in a file."""
    path = tmp_path / "scan.ply"
    write(cloud, path)
    return path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process; gives exit code, stdout and stderr."""

    def call(*words: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return call
