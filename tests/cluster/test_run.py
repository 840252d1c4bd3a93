"""Plans carried out in this process."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, read, write
from pointmend.cluster import tasks
from pointmend.cluster.crew import AloneHere
from pointmend.cluster.plan import Plan
from pointmend.cluster.run import DENOISING, WRITING, Run, Standing
from pointmend.cluster.work import FINISHED
from pointmend.denoising.denoiser import Denoiser
from pointmend.errors import InputError
from pointmend.scans.budget import Budget
from pointmend.scans.marks import Marks
from pointmend.scans.pipeline import denoise_file

from .conftest import COUNT, SIDE, MakePlan, carry_out, outputs, terrain


@pytest.mark.parametrize(
    ("name", "marks"),
    [("a.laz", Marks()), ("b.ply", Marks(True, True, True)), ("c.las", Marks(outliers=True))],
)
def test_one_file_is_denoised_as_if_it_were_streamed(
    fields: list[Path], weights: Path, make_plan: MakePlan, tmp_path: Path, name: str, marks: Marks
) -> None:
    source = next(path for path in fields if path.name == name)
    outliers = {"outliers": 3.0} if marks.outliers else {}
    plan = make_plan([source], marks=marks, eta=0.5, **outliers)
    [report] = carry_out(plan, weights)
    streamed = tmp_path / f"streamed{source.suffix}"
    denoiser = Denoiser.load(weights, "cpu")
    budget = Budget(COUNT, 1000, True, 0)
    tally = denoise_file(denoiser, source, streamed, plan.settings, marks, budget)
    assert outputs(plan) == [streamed.read_bytes()]
    assert report.tally == tally
    assert tally.moved > 1500


def test_neighbours_lend_each_other_their_points(
    fields: list[Path], weights: Path, make_plan: MakePlan, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.ply"
    clouds = [read(path) for path in fields]
    positions = np.concatenate([cloud.positions for cloud in clouds])
    write(PointCloud(positions), whole)
    together, alone = make_plan(fields), make_plan([whole], "whole")
    apart = make_plan(fields[:1], "apart")
    carry_out(together, weights)
    for number, source in enumerate(fields):
        before, after = read(source), read(Path(together.parts[number].target))
        assert list(after.attributes) == list(before.attributes)
        for name, values in before.attributes.items():
            assert after.attributes[name].tobytes() == values.tobytes()
    carry_out(alone, weights)
    joint = [read(Path(part.target)).positions for part in together.parts]
    single = read(Path(alone.parts[0].target)).positions.reshape(3, COUNT, 3)
    # PLY holds all digits; LAS and LAZ round to the millimetre.
    assert np.array_equal(joint[1], single[1])
    assert np.allclose(joint[0], single[0], atol=6e-4)
    assert np.allclose(joint[2], single[2], atol=6e-4)
    carry_out(apart, weights)
    lonely = read(Path(apart.parts[0].target)).positions
    difference = np.linalg.norm(lonely - joint[0], axis=1)
    at_border = clouds[0].positions[:, 0] > 515_000.0 + SIDE - 1.0
    assert np.median(difference[at_border]) > 0.002


def test_a_second_run_does_nothing(fields: list[Path], weights: Path, make_plan: MakePlan) -> None:
    plan = make_plan(fields[:2])
    first = carry_out(plan, weights)
    times = [Path(part.target).stat().st_mtime_ns for part in plan.parts]
    assert Run(plan).is_finished
    seen: list[Standing] = []

    def nobody() -> nullcontext[AloneHere]:
        raise AssertionError("there is nothing to do")

    assert Run(plan).carry_out(weights, nobody, seen.append) == first
    assert seen == []
    assert [Path(part.target).stat().st_mtime_ns for part in plan.parts] == times
    # What stays beside the outputs is small.
    left = [p for p in Run(plan).work.path.rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in left) < 10_000
    Path(plan.parts[1].target).unlink()
    before = outputs(replace(plan, parts=plan.parts[:1]))
    assert not Run(plan).is_finished
    carry_out(plan, weights)
    assert outputs(replace(plan, parts=plan.parts[:1])) == before


class CutOff(AloneHere):
    """Is interrupted after so many tiles."""

    def __init__(self, tiles: int) -> None:
        self.tiles = tiles

    def do(self, task, work, numbers):  # type: ignore[no-untyped-def]
        for count, outcome in enumerate(super().do(task, work, numbers)):
            if task is tasks.denoise_one and count == self.tiles:
                raise KeyboardInterrupt
            yield outcome


def interrupted(plan: Plan, weights: Path, tiles: int) -> Run:
    run = Run(plan)
    with pytest.raises(KeyboardInterrupt):
        run.carry_out(weights, lambda: nullcontext(CutOff(tiles)), lambda standing: None)
    return run


def test_an_interrupted_run_goes_on_and_ends_the_same(
    fields: list[Path], weights: Path, make_plan: MakePlan, reference: list[bytes]
) -> None:
    plan = make_plan(fields)
    interrupted(plan, weights, 2)
    seen: list[Standing] = []
    carry_out(plan, weights, seen)
    tiles = [standing for standing in seen if standing.stage == DENOISING]
    assert [standing.done for standing in tiles] == list(range(2, tiles[0].total + 1))
    assert tiles[0].total == 5
    assert tiles[-1].points == tiles[-1].all_points == 3 * COUNT
    assert tiles[-1].speed > 0
    assert outputs(plan) == reference


def test_damaged_and_half_noted_tiles_are_done_again(
    fields: list[Path], weights: Path, make_plan: MakePlan, reference: list[bytes]
) -> None:
    plan = make_plan(fields)
    run = interrupted(plan, weights, 4)
    noted = map(json.loads, (run.work.path / FINISHED).read_text().splitlines())
    tiles = [entry["number"] for entry in noted if entry["stage"] == DENOISING]
    assert len(tiles) == 4
    damaged, missing = map(run.work.tile, tiles[:2])
    content = bytearray(damaged.read_bytes())
    content[-7] ^= 1
    damaged.write_bytes(content)
    missing.unlink()
    with (run.work.path / FINISHED).open("ab+") as file:
        file.truncate(file.tell() - 9)  # as a crash would leave it
    seen: list[Standing] = []
    carry_out(plan, weights, seen)
    assert next(s.done for s in seen if s.stage == DENOISING) == 1
    assert outputs(plan) == reference


def test_changed_settings_or_inputs_are_another_plan(
    fields: list[Path], weights: Path, make_plan: MakePlan, tmp_path: Path
) -> None:
    own = tmp_path / "own.ply"
    write(terrain(0), own)
    plan = make_plan([own])
    run = interrupted(plan, weights, 1)
    assert make_plan([own]) == plan
    changed = [
        make_plan([own], strength=0.5),
        make_plan([own], tile_points=1200),
        make_plan([own], marks=Marks(displacement=True)),
        replace(plan, model="other"),
        replace(plan, threads=2),
    ]
    own.write_bytes(own.read_bytes()[:-1] + b"\x07")
    changed.append(make_plan([own]))
    assert len({p.digest for p in [plan, *changed]}) == 7
    assert Run(changed[0]).others() == [run.work.path]
    # And a plan does not go on with a file that is not the one it has seen.
    with pytest.raises(InputError, match=r"own\.ply was changed meanwhile"):
        carry_out(replace(plan, threads=3), weights)


def test_a_tile_that_cannot_be_done_costs_its_own_files_only(
    fields: list[Path],
    weights: Path,
    make_plan: MakePlan,
    reference: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan(fields)
    honest = tasks.denoise_one

    def poisoned(work: str, number: int) -> tasks.Value:
        if number == 0:
            raise InputError("bad luck")
        return honest(work, number)

    monkeypatch.setattr(tasks, "denoise_one", poisoned)
    reports = carry_out(plan, weights)
    failed = [report for report in reports if report.tally is None]
    assert 1 <= len(failed) < 3
    for report in failed:
        assert "tile 0 was given up: bad luck" in report.error
        assert str(report.source) in report.error
        assert not report.target.exists()
    assert all(report.target.exists() for report in reports if report.tally is not None)
    monkeypatch.undo()
    seen: list[Standing] = []
    carry_out(plan, weights, seen)
    assert next(s.done for s in seen if s.stage == DENOISING) == seen_total(seen, DENOISING) - 1
    assert next(s.done for s in seen if s.stage == WRITING) == 3 - len(failed)
    assert outputs(plan) == reference


def seen_total(seen: list[Standing], stage: str) -> int:
    return next(standing.total for standing in seen if standing.stage == stage)


def test_a_plan_is_carried_out_once_at_a_time(
    fields: list[Path], weights: Path, make_plan: MakePlan
) -> None:
    pytest.importorskip("fcntl")
    plan = make_plan(fields[:1])
    with Run(plan).work.alone(), pytest.raises(InputError, match="another run"):
        carry_out(plan, weights)


def test_clouds_without_points_and_rows_that_are_not_finite(
    weights: Path, make_plan: MakePlan, tmp_path: Path
) -> None:
    empty, holes = tmp_path / "empty.ply", tmp_path / "holes.ply"
    write(PointCloud(np.zeros((0, 3))), empty)
    positions = terrain(0).positions.copy()
    positions[[0, 5, COUNT - 1]] = np.nan
    write(PointCloud(positions), holes)
    plan = make_plan([empty, holes])
    reports = carry_out(plan, weights)
    assert [report.tally.points for report in reports if report.tally] == [0, COUNT]
    assert reports[1].tally is not None
    assert reports[1].tally.invalid == 3
    found = read(Path(plan.parts[1].target)).positions
    assert np.isnan(found[[0, 5, COUNT - 1]]).all()
    [report] = carry_out(make_plan([empty], "nothing"), weights)
    assert report.tally is not None
    assert report.tally.nothing_to_gain


def test_local_noise_is_each_tiles_own(
    fields: list[Path], weights: Path, make_plan: MakePlan
) -> None:
    local = make_plan(fields, local_noise=True)
    levels = {report.tally.sigma for report in carry_out(local, weights) if report.tally}
    assert len(levels) == 3


def test_files_that_cannot_be_one_cloud_are_refused(
    fields: list[Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    text = tmp_path / "a.xyz"
    write(PointCloud(np.eye(3)), text)
    with pytest.raises(InputError, match="text cannot be written in pieces"):
        make_plan([text])
    ascii_ply = tmp_path / "ascii.ply"
    ascii_ply.write_text(
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\nproperty double y\n"
        "property double z\nend_header\n0 0 0\n"
    )
    with pytest.raises(InputError, match=r"ascii\.ply.*convert it to LAS, LAZ or binary PLY"):
        make_plan([ascii_ply])
    own = tmp_path / "out" / "own.ply"
    write(terrain(0), own)
    with pytest.raises(InputError, match="is an input"):
        make_plan([own])
