"""
Patches per CPU second of our training step, beside SBD's on the same patches.

Run: python -m benchmarks.training_step
Both in this process, one thread, forward and backward and update; medians of CPU time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.plain_sbd import SBD
from pointmend.geometry.procedural import demo_shape
from pointmend.network.score import ScoreNetwork
from pointmend.training.algorithm import batch_losses, prepare_batch
from pointmend.training.config import CONFIGURATIONS, TrainingConfig
from pointmend.training.memory import keep_freed_memory
from pointmend.training.optimiser import Optimiser
from pointmend.training.shapes import MeshSurface, Shape

REPEATS = 7


def cpu_seconds(action: Callable[[], None]) -> float:
    """Median CPU time of an action, after two that do not count."""
    times = []
    for _ in range(REPEATS + 2):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return statistics.median(times[2:])


def make_shape() -> Shape:
    mesh = demo_shape()
    surface = MeshSurface.of(mesh, 300_000, np.random.default_rng(0))
    return Shape("demo", [surface.points[:30_000]], surface)


def our_step(config: TrainingConfig, shape: Shape) -> Callable[[], None]:
    network = ScoreNetwork(config.network)
    optimiser = Optimiser(network, config)

    def step() -> None:
        generators = [np.random.default_rng([optimiser.step, n]) for n in range(config.batch)]
        batch = prepare_batch([shape], network, config, generators)
        optimiser.update(batch_losses(network, batch, config).total)

    return step


def sbd_step(config: TrainingConfig, shape: Shape) -> Callable[[], None]:
    network = SBD()
    adam = torch.optim.Adam(network.parameters(), lr=1e-4)
    generators = [np.random.default_rng(n) for n in range(config.batch)]
    reader = ScoreNetwork(config.network)
    patches = prepare_batch([shape], reader, config, generators).patches
    noisy = torch.tensor(np.stack([patch.noisy for patch in patches])).float()
    clean = torch.tensor(np.stack([patch.clean for patch in patches])).float()

    def step() -> None:
        adam.zero_grad()
        torch.autograd.backward(network(noisy, clean))
        adam.step()

    return step


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    keep_freed_memory()
    shape = make_shape()
    batch = CONFIGURATIONS["default"].batch
    peer = batch / cpu_seconds(sbd_step(CONFIGURATIONS["default"], shape))
    print(f"{'step':<10} {'patches per CPU s':>18} {'against SBD':>12}")
    print(f"{'SBD':<10} {peer:>18.2f} {1.0:>11.1f}x")
    for name, config in CONFIGURATIONS.items():
        ours = config.batch / cpu_seconds(our_step(config, shape))
        print(f"{name:<10} {ours:>18.2f} {ours / peer:>11.1f}x")


if __name__ == "__main__":
    main()
