import numpy as np
import pytest
import torch

from pointmend import PointCloud
from pointmend.denoising.denoiser import Denoiser
from pointmend.network.config import NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard

COUNT = 9000


@pytest.fixture(scope="session")
def denoiser() -> Denoiser:
    """A tiny network with random weights; its results mean nothing, but they are local."""
    config = NetworkConfig(
        channels=8, hidden=8, layers=1, blocks=1, frame="point", planes=True, graph_candidates=16
    )
    torch.manual_seed(0)
    return Denoiser(ScoreNetwork(config).eval(), ModelCard(config), torch.device("cpu"))


@pytest.fixture
def cloud() -> PointCloud:
    """A noisy hill in UTM coordinates with attributes, in no particular order."""
    rng = np.random.default_rng(0)
    positions = np.round(rng.uniform(0.0, 30.0, (COUNT, 3)), 3)
    positions[:, 2] = np.round(np.sin(positions[:, 0] / 5) + 0.1 * rng.normal(size=COUNT), 3)
    return PointCloud(
        positions + np.array([515000.0, 4918000.0, 300.0]),
        {
            "intensity": rng.integers(0, 65535, COUNT).astype(np.uint16),
            "gps_time": rng.uniform(size=COUNT),
        },
    )
