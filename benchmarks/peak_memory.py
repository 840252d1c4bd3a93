"""
One method on one cloud with nothing else in the process; prints its peak memory in MB.

    python -m benchmarks.peak_memory NAME DATA MODEL CLOUD.npy THREADS

`benchmarks.inference` starts it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.plain_sbd import SBD
from pointmend.methods.method import Task
from pointmend.methods.registry import contestant
from pointmend.methods.sbd import cut_patches

# SBD as published. Two of its 30 steps reach the peak.
AT_ONCE = "sbd-at-once"
STEPS = 2


def denoise_at_once(points: NDArray[np.float64]) -> None:
    """SBD on all patches of a cloud (N, 3) together; what it needs does not depend on weights."""
    patches = points[cut_patches(points)]
    SBD().eval().denoise(torch.from_numpy(patches).float(), STEPS)


def main() -> None:
    name, data, model, cloud, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    points = np.load(cloud)
    if name == AT_ONCE:
        denoise_at_once(points)
    else:
        contestant(name, data=Path(data), model=model).method(Task(points, level=0.02))
    status = Path("/proc/self/status").read_text()  # ru_maxrss would be inherited from the parent
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


if __name__ == "__main__":
    main()
