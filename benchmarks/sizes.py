"""
Does the cost of `pointmend denoise` grow with the number of points, and its memory not?

    python -m benchmarks.sizes --points 10000 100000 1000000 10000000 --max-memory 2G

Makes hilly terrain of each size (binary PLY, UTM coordinates, noise of half a spacing), denoises
each file in a process of its own, and prints CPU seconds, CPU seconds per million points against
those of the smallest size, peak resident memory, and how far points are from the true surface
before and after. CPU time, because other work on the machine does not change it much.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.cloud.files import open_pieces
from pointmend.cloud.ply import FORMAT as PLY
from pointmend.cloud.point_cloud import PointCloud

SPACING = 0.25
OFFSET = np.array([515_000.0, 4_918_000.0, 300.0])
ROWS = 500_000

Floats = NDArray[np.float64]


def height(x: Floats, y: Floats) -> Floats:
    return 4.0 * np.sin(x / 25.0) * np.cos(y / 18.0)


def slope(x: Floats, y: Floats) -> Floats:
    dx = 4.0 / 25.0 * np.cos(x / 25.0) * np.cos(y / 18.0)
    dy = -4.0 / 18.0 * np.sin(x / 25.0) * np.sin(y / 18.0)
    return np.sqrt(1.0 + dx**2 + dy**2)


def make_terrain(path: Path, count: int) -> None:
    """Strips of terrain one after the other, as a flight would record them."""
    side = int(np.ceil(np.sqrt(count)))
    rng = np.random.default_rng(count)
    template = PointCloud(np.zeros((1, 3)), {"intensity": np.zeros(1, dtype=np.uint16)})
    assert PLY.pieces is not None
    with PLY.pieces.create(template, count, path) as writer:
        for first in range(0, count, ROWS):
            number = np.arange(first, min(first + ROWS, count))
            x = SPACING * (number % side + rng.uniform(-0.35, 0.35, len(number)))
            y = SPACING * (number // side + rng.uniform(-0.35, 0.35, len(number)))
            points = np.stack([x, y, height(x, y)], axis=1)
            points += 0.5 * SPACING * rng.standard_normal(points.shape)
            intensity = rng.integers(0, 65535, len(number)).astype(np.uint16)
            writer.append(PointCloud(points + OFFSET, {"intensity": intensity}))


def rms(path: Path) -> float:
    """RMS distance to the terrain, to first order."""
    total, count = 0.0, 0
    with open_pieces(path) as reader:
        for piece in reader.pieces(ROWS):
            x, y, z = (piece.positions - OFFSET).T
            total += float(np.sum(((z - height(x, y)) / slope(x, y)) ** 2))
            count += len(piece)
    return float(np.sqrt(total / count))


def measure(source: Path, target: Path, options: list[str]) -> dict[str, float]:
    """CPU seconds and peak memory of one run of the command."""
    command = [sys.executable, "-m", "pointmend", "denoise", str(source), str(target), "--json"]
    run = subprocess.Popen(
        command + options,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert run.stdout is not None
    facts = json.loads(run.stdout.read())
    _, status, usage = os.wait4(run.pid, 0)
    assert status == 0
    return {
        "cpu": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss / 1024.0,
        "wall": facts["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--max-memory", default="2G")
    parser.add_argument("--steps", default="2")
    parser.add_argument("--model", default="default")
    options = parser.parse_args()
    words = ["--max-memory", options.max_memory, "--steps", options.steps, "--threads", "1"]
    words += ["--model", options.model]
    print("points      CPU s    CPU s / 1M  ratio  peak MB  RMS before -> after")
    reference = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for count in options.points:
            source, target = Path(folder) / "in.ply", Path(folder) / "out.ply"
            make_terrain(source, count)
            found = measure(source, target, words)
            each = found["cpu"] / count * 1e6
            reference = reference or each
            print(
                f"{count:<11,} {found['cpu']:<8.1f} {each:<11.1f} {each / reference:<6.2f} "
                f"{found['memory']:<8.0f} {rms(source):.4f} -> {rms(target):.4f}",
                flush=True,
            )
            source.unlink()
            target.unlink()


if __name__ == "__main__":
    main()
