import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pointmend
from pointmend import PointCloud, read, write
from pointmend.denoising.algorithm import Progress
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.settings import Settings
from pointmend.errors import FileFormatError, InputError
from pointmend.scans.budget import Budget, plan_file
from pointmend.scans.marks import Marks
from pointmend.scans.pipeline import denoise_file

SETTINGS = Settings(steps=1, careful=False)
STREAMED = Budget(9000, 2500, True, 0)
HELD = Budget(9000, 10_000, False, 0)


def everything_else_is_kept(before: PointCloud, after: PointCloud) -> None:
    assert list(after.attributes) == list(before.attributes)
    for name, values in before.attributes.items():
        assert after.attributes[name].dtype == values.dtype
        assert after.attributes[name].tobytes() == values.tobytes()


@pytest.mark.parametrize("suffix", [".las", ".laz", ".ply"])
def test_streamed_equals_held_in_memory(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud, suffix: str
) -> None:
    source = tmp_path / f"in{suffix}"
    write(cloud, source)
    held, streamed = tmp_path / f"held{suffix}", tmp_path / f"streamed{suffix}"
    first = denoise_file(denoiser, source, held, SETTINGS, budget=HELD)
    second = denoise_file(denoiser, source, streamed, SETTINGS, budget=STREAMED)
    a, b = read(held), read(streamed)
    everything_else_is_kept(read(source), a)
    everything_else_is_kept(read(source), b)
    shift = np.linalg.norm(a.positions - read(source).positions, axis=1)
    assert np.median(shift) > 0.01
    # A network without training is rough; what matters is that every row got its own result.
    assert np.percentile(np.abs(a.positions - b.positions), 99) < 0.05 * np.median(shift)
    assert (first.points, first.moved) == (second.points, second.moved) == (9000, 9000)
    assert second.moved_mean == pytest.approx(first.moved_mean, rel=1e-2)
    assert second.sigma == pytest.approx(first.sigma, rel=0.1)
    assert second.spacing == pytest.approx(first.spacing)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [source.name, held.name, streamed.name]
    )


@pytest.mark.parametrize("budget", [HELD, STREAMED])
def test_rows_that_are_not_finite_stay_in_place(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud, budget: Budget
) -> None:
    holes = cloud.positions.copy()
    holes[[0, 77, 8999]] = np.nan
    source, target = tmp_path / "in.ply", tmp_path / "out.ply"
    write(cloud.with_positions(holes), source)
    tally = denoise_file(denoiser, source, target, SETTINGS, budget=budget)
    assert tally.invalid == 3
    found = read(target)
    assert np.isnan(found.positions[[0, 77, 8999]]).all()
    assert np.isfinite(np.delete(found.positions, [0, 77, 8999], axis=0)).all()
    everything_else_is_kept(cloud, found)


@pytest.mark.parametrize("budget", [HELD, STREAMED])
@pytest.mark.parametrize("drop", [True, False])
def test_outliers(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud, budget: Budget, drop: bool
) -> None:
    strays = cloud.positions.copy()
    strays[[5, 5000], 2] += 500.0
    source, target = tmp_path / "in.ply", tmp_path / "out.ply"
    write(cloud.with_positions(strays), source)
    marks = Marks(displacement=True, drop_outliers=drop, outliers=True)
    tally = denoise_file(denoiser, source, target, replace(SETTINGS, outliers=3.0), marks, budget)
    found = read(target)
    if drop:
        assert len(found) == 9000 - tally.outliers
        assert found.positions[:, 2].max() < 400.0
        kept = np.isin(cloud.attributes["gps_time"], found.attributes["gps_time"])
        assert not kept[[5, 5000]].any()
    else:
        assert found.attributes["outlier"][[5, 5000]].all()
        assert found.attributes["outlier"].sum() == tally.outliers
        assert np.array_equal(found.positions[[5, 5000]], strays[[5, 5000]])
    moved = found.attributes["displacement"]
    assert moved.dtype == np.float32
    assert moved.max() == pytest.approx(tally.moved_largest, rel=1e-6)


def test_clean_clouds_are_copied_bit_for_bit(tmp_path: Path, cloud: PointCloud) -> None:
    flat = cloud.positions.copy()
    flat[:, 2] = 300.0
    source = tmp_path / "in.laz"
    write(cloud.with_positions(flat), source)
    denoiser = Denoiser.load()
    for budget in (HELD, STREAMED):
        target = tmp_path / f"{budget.streamed}.laz"
        tally = denoise_file(denoiser, source, target, Settings(steps=1), budget=budget)
        assert tally.nothing_to_gain
        assert tally.moved == 0
        assert tally.held_back == 9000
        assert np.array_equal(read(target).positions, read(source).positions)


@pytest.mark.parametrize("budget", [HELD, STREAMED])
def test_cancelled_runs_leave_nothing_behind(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud, budget: Budget
) -> None:
    def stop(state: Progress) -> None:
        raise KeyboardInterrupt

    source, target = tmp_path / "in.ply", tmp_path / "out.ply"
    write(cloud, source)
    target.write_text("precious")
    with pytest.raises(KeyboardInterrupt):
        denoise_file(denoiser, source, target, SETTINGS, budget=budget, report=stop)
    assert target.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.ply", "out.ply"]


def test_errors_name_the_file_they_are_about(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud
) -> None:
    source = tmp_path / "in.ply"
    write(cloud, source)
    with pytest.raises(InputError, match=r"out\.xyz: text cannot be written in pieces"):
        denoise_file(denoiser, source, tmp_path / "out.xyz", SETTINGS, budget=STREAMED)
    source.write_bytes(source.read_bytes()[:-5])
    with pytest.raises(FileFormatError, match=r"^[^:]*in\.ply: [^:]*PLY"):
        denoise_file(denoiser, source, tmp_path / "out.ply", SETTINGS, budget=STREAMED)
    with pytest.raises(FileFormatError, match=r"missing\.ply: no such file"):
        plan_file(tmp_path / "missing.ply", None)
    assert list(tmp_path.iterdir()) == [source]


def test_what_the_output_cannot_hold_is_told(
    tmp_path: Path, denoiser: Denoiser, cloud: PointCloud
) -> None:
    source, target = tmp_path / "in.ply", tmp_path / "out.off"
    write(cloud, source)
    tally = denoise_file(denoiser, source, target, SETTINGS, budget=HELD)
    assert any("gps_time" in lost for lost in tally.lost)


def test_files_are_planned_by_their_points(tmp_path: Path, cloud: PointCloud) -> None:
    for suffix in (".las", ".ply", ".xyz", ".npz", ".pcd"):
        path = tmp_path / f"a{suffix}"
        write(cloud, path)
        budget = plan_file(path, 4 * 10**9)
        assert not budget.streamed
        assert 9000 <= budget.points < 200_000
    assert plan_file(tmp_path / "a.las", 4 * 10**9).points == 9000


CHILD = """
import sys
from pathlib import Path
import torch
from pointmend.denoising.denoiser import Denoiser
from pointmend.network.config import NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard
from pointmend.denoising.settings import Settings
from pointmend.scans.budget import Budget, plan_file
from pointmend.scans.pipeline import denoise_file
config = NetworkConfig(
    channels=8, hidden=8, layers=1, blocks=1, frame="point", planes=True, graph_candidates=16
)
denoiser = Denoiser(ScoreNetwork(config).eval(), ModelCard(config), torch.device("cpu"))
source, target, streamed = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "True"
budget = Budget(100_000, 10_000 if streamed else 100_000, streamed, 0)
def peak():  # not ru_maxrss, which a child inherits from its parent
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])
before = peak()
denoise_file(denoiser, source, target, Settings(steps=1), budget=budget)
print(peak() - before)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="peak memory is read as Linux has it"
)
def test_streaming_takes_less_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 60, (100_000, 3))
    points[:, 2] = 0.1 * rng.normal(size=100_000)
    source = tmp_path / "in.ply"
    write(PointCloud(points), source)
    peaks = []
    for streamed in (False, True):
        words = [sys.executable, "-c", textwrap.dedent(CHILD), str(source)]
        words += [str(tmp_path / f"{streamed}.ply"), str(streamed)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < 0.7 * peaks[0]
    assert pointmend.read(tmp_path / "True.ply").positions.shape == (100_000, 3)
