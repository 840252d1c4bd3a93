"""What a region's judge tells the sampler."""

import numpy as np
import pytest
import torch
from torch import Tensor

from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.region import TOLD_OF_READ
from pointmend.geometry.frames import frame_cloud
from pointmend.network.score import ScoreNetwork


def test_a_little_more_noise_is_told_than_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Tensor] = []
    compared = ScoreNetwork.compared

    def listen(network: ScoreNetwork, spreads: Tensor | None, noise: Tensor) -> Tensor | None:
        heard.append(noise)
        return compared(network, spreads, noise)

    monkeypatch.setattr(ScoreNetwork, "compared", listen)
    rng = np.random.default_rng(3)
    direction = rng.standard_normal((2000, 3))
    noisy = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    noisy += 0.03 * rng.standard_normal(noisy.shape)
    scale = frame_cloud(noisy).scale
    shipped = Denoiser.load("default", device="cpu")
    read = shipped.denoise(noisy, steps=1).sigma
    assert torch.count_nonzero(heard[0]) == 0
    assert scale * float(heard[-1].min()) == pytest.approx(TOLD_OF_READ * read, rel=1e-3)
    shipped.denoise(noisy, steps=1, sigma=0.025)
    assert scale * float(heard[-1].min()) == pytest.approx(0.025, rel=1e-3)
