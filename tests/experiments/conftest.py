"""A benchmark with two tiny shapes, so that every experiment can be driven in seconds."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from pointmend.evaluation.cells import CellStore
from pointmend.experiments.bench import Workbench
from pointmend.experiments.grid import Grid
from pointmend.geometry.meshes import Mesh, sample_surface
from pointmend.geometry.procedural import box, torus
from pointmend.methods.sbd_network import tensor_shapes

POINTS = 300


def write_random_sbd(path: Path) -> None:
    """SBD's tensors, small and random; variances of normalisations are positive."""
    generator = torch.Generator().manual_seed(0)
    path.parent.mkdir(parents=True)
    tensors = {
        name: 0.01 + 0.05 * torch.rand(shape, generator=generator)
        for name, shape in tensor_shapes().items()
    }
    save_file(tensors, path)


@pytest.fixture(scope="session")
def benchmark_folder(
    tmp_path_factory: pytest.TempPathFactory, write_off: Callable[[Path, Mesh], None]
) -> Path:
    data = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    shapes = {"torus": torus(24, 16), "box": box(4)}
    for name, mesh in shapes.items():
        write_off(data / "punet" / "meshes" / "test" / f"{name}.off", mesh)
    clouds = {name: sample_surface(mesh, POINTS, rng)[0] for name, mesh in shapes.items()}
    (data / "punet" / "clouds").mkdir()
    np.savez(data / "punet" / "clouds" / f"test_{POINTS}_poisson.npz", **clouds)  # type: ignore[arg-type]
    (data / "real").mkdir()
    np.savetxt(data / "real" / "street.xyz", clouds["box"] + [100.0, 200.0, 0.0])
    (data / "real" / "broken.ply").write_text("ply\nnothing else\n")
    (data / "train").mkdir()
    np.save(data / "train" / "ring.npy", sample_surface(shapes["torus"], 1500, rng)[0])
    write_random_sbd(data / "peers" / "sbd.safetensors")
    return data


def workbench(data: Path, out: Path) -> Workbench:
    return Workbench(
        data=data,
        out=out,
        grid=Grid(CellStore(out / "cells")),
        points=(POINTS,),
        levels=(0.01, 0.03),
        cache=out / "cache",
    )


@pytest.fixture
def bench(benchmark_folder: Path, tmp_path: Path) -> Workbench:
    return workbench(benchmark_folder, tmp_path)


@pytest.fixture(scope="session")
def shared_bench(benchmark_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """One folder for several tests, so that cells and networks are made once."""
    return workbench(benchmark_folder, tmp_path_factory.mktemp("results"))
