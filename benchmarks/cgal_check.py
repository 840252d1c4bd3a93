"""
Our smoothers beside CGAL's own C++ on a generated shape: how far apart are the results?

Run: python -m benchmarks.cgal_check
Needs a C++ compiler, CGAL and Eigen (Debian: libcgal-dev libeigen3-dev); says so without them.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointmend.geometry.meshes import poisson_disk
from pointmend.geometry.procedural import demo_shape
from pointmend.methods.bilateral import BilateralSmoothing
from pointmend.methods.jet import JetSmoothing
from pointmend.methods.method import Method, Task
from pointmend.methods.wlop import Wlop

SOURCE = Path(__file__).parent / "cgal" / "peers.cpp"
OPTIONS = ["-O2", "-DNDEBUG", "-DCGAL_EIGEN3_ENABLED", "-I/usr/include/eigen3"]
POINTS, SIGMA = 10_000, 0.01

# Method of CGAL, its number (neighbours or iterations), and ours with the same.
PAIRS: list[tuple[str, int, Method]] = [
    ("jet", 30, JetSmoothing(30)),
    ("jet", 100, JetSmoothing(100)),
    ("bilateral", 30, BilateralSmoothing(30)),
    ("bilateral", 100, BilateralSmoothing(100)),
    ("wlop", 5, Wlop(iterations=5)),
]


def build(folder: Path) -> Path | None:
    """Compile CGAL's side; None when this machine cannot."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return None
    program = folder / "peers"
    made = subprocess.run(
        [compiler, *OPTIONS, str(SOURCE), "-o", str(program)], capture_output=True, check=False
    )
    return program if made.returncode == 0 else None


def cgal(program: Path, name: str, number: int, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """CGAL's result (N, 3), row by row."""
    text = "\n".join(" ".join(map(repr, row)) for row in points.tolist())
    out = subprocess.run(
        [program, name, str(number)], input=text, capture_output=True, text=True, check=True
    )
    return np.array(out.stdout.split(), dtype=np.float64).reshape(-1, 3)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        if program is None:
            print("skipped: no C++ compiler, or no CGAL and Eigen to compile with")
            return
        rng = np.random.default_rng(0)
        clean = poisson_disk(demo_shape(), POINTS, rng)
        noisy = clean + SIGMA * rng.standard_normal(clean.shape)
        print("RMS difference as a share of the noise; points that differ by more than 1e-6 of it")
        for name, number, method in PAIRS:
            theirs = cgal(program, name, number, noisy)
            began = time.process_time()
            ours = method(Task(noisy))
            spent = time.process_time() - began
            gap = np.linalg.norm(ours - theirs, axis=1) / SIGMA
            rms, differing = np.sqrt(np.mean(gap**2)), np.mean(gap > 1e-6)
            print(f"{name:<10}{number:>4}  {rms:9.2e}  {differing:6.1%}  ours {spent:.1f} CPU s")


if __name__ == "__main__":
    main()
