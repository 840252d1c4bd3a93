"""Room `cluster`: a plan carried out stage by stage, from wherever it was left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from pointmend.atomic import write_atomically
from pointmend.errors import FileFormatError, InputError
from pointmend.geometry.tiles import split_evenly, tiles_for
from pointmend.scans.tally import Tally

from . import tasks
from .crew import Crew
from .plan import Fingerprint, Plan, fingerprint
from .tasks import Task, Value
from .work import PREFIX, SEGMENT, DamagedResult, WorkFolder

# How often a tile is tried before it is given up.
ATTEMPTS = 3

READING, SORTING, MEASURING = "reading", "sorting", "measuring"
SURVEYING, DENOISING, WRITING = "surveying", "denoising", "writing"


@dataclass(frozen=True)
class Standing:
    """
    Where a run stands.

    Attributes
    ----------
    stage : what is being done.
    done, total : tasks of the stage, those of earlier runs included.
    points, all_points : the same in points, of the stage in which they are moved.
    speed : points per second in this run; 0 until there is something to tell.
    """

    stage: str
    done: int
    total: int
    points: int = 0
    all_points: int = 0
    speed: float = 0.0


Tell = Callable[[Standing], None]


@dataclass(frozen=True)
class PartReport:
    """What became of a file: a tally, or why it was not written."""

    source: Path
    target: Path
    tally: Tally | None
    error: str = ""


class Run:
    """
    One plan and what is finished of it.

    Parameters
    ----------
    plan : what is to be done.

    Attributes
    ----------
    work : the folder in which it is done.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.work = WorkFolder.of(plan)
        self._finished = self.work.finished()

    def is_written(self, part: int) -> bool:
        """Whether the output of a file is there, as it was written."""
        done = self._finished.of(WRITING).get(part)
        if done is None:
            return False
        try:
            found = fingerprint(Path(self.plan.parts[part].target))
        except FileFormatError:
            return False
        return found == Fingerprint(**done["output"])

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing to do."""
        return all(map(self.is_written, range(len(self.plan.parts))))

    def others(self) -> list[Path]:
        """Folders of unfinished plans for the same output folder, with other inputs or settings."""
        found = map(WorkFolder, self.plan.folder.glob(f"{PREFIX}*"))
        return sorted(f.path for f in found if f.path != self.work.path and not f.is_cleared)

    def carry_out(
        self, weights: Path, hire: Callable[[], AbstractContextManager[Crew]], tell: Tell
    ) -> list[PartReport]:
        """
        Do all that is left to do.

        Parameters
        ----------
        weights : of the model.
        hire : gives the workers; called only if there is something to do.
        """
        if self.is_finished:
            return self._reports({})
        with self.work.alone():
            self._finished = self.work.finished()
            if self.work.is_cleared:  # but some output is gone or changed
                self.work.restart()
                self._finished = self.work.finished()
            self.work.begin(self.plan, weights)
            with hire() as crew:
                stages = _Stages(self, crew, tell)
                failed = stages.work_through()
            if not failed:
                self.work.clear()
        return self._reports(failed)

    def _reports(self, failed: dict[int, str]) -> list[PartReport]:
        """What became of every file; `failed` says why some were not written."""
        reports = []
        for number, part in enumerate(self.plan.parts):
            source, target = Path(part.source), Path(part.target)
            if number in failed:
                reports.append(PartReport(source, target, None, failed[number]))
            else:
                values = self._finished.of(WRITING)[number]["tally"]
                listed = {name: tuple(values[name]) for name in ("schedule", "lost")}
                reports.append(PartReport(source, target, Tally(**(values | listed))))
        return reports


class _Stages:
    """The stages of a run, each of which needs all that the one before has found."""

    def __init__(self, run: Run, crew: Crew, tell: Tell) -> None:
        self.run, self.crew, self.tell = run, crew, tell
        self.plan, self.work, self.finished = run.plan, run.work, run._finished

    def work_through(self) -> dict[int, str]:
        """Do what is left; returns why files, by number, were not written."""
        parts = range(len(self.plan.parts))
        self._must(READING, tasks.sample_part, parts)
        if not (self.work.path / "tiling.npz").exists():
            sample = np.concatenate([np.load(self.work.sample(part)) for part in parts])
            wanted = tiles_for(self.plan.points, self.plan.options.tile_points)
            self.work.save_tiling(split_evenly(sample, wanted))
        self._must(SORTING, tasks.sort_part, parts)
        segments = self._segments()
        self.work.save("segments", segments)
        tiles = np.unique(segments["tile"]).tolist()
        self._must(MEASURING, tasks.measure_reach, tiles)
        self._save_reaches()
        if tiles:
            self._must(SURVEYING, tasks.survey_all, [0])
            survey = json.dumps(self.finished.of(SURVEYING)[0])
            write_atomically(self.work.survey, survey.encode())
        bad_tiles = self._denoise(segments, tiles)
        return self._write(segments, bad_tiles)

    def _each(
        self,
        stage: str,
        task: Task,
        numbers: Sequence[int],
        left: Sequence[int],
        points: Mapping[int, int] | None = None,
    ) -> dict[int, str]:
        """
        Do a task for all numbers that are left; what works is noted, what fails returned with why.

        Parameters
        ----------
        numbers : all of the stage, of which `left` are still to be done.
        points : how many points each of them stands for, in the stage in which they are moved.
        """
        points = points or {}
        everything = sum(points.values())
        done = len(numbers) - len(left)
        moved = before = everything - sum(points.get(number, 0) for number in left)
        began = monotonic()
        self.tell(Standing(stage, done, len(numbers), moved, everything))
        failed: dict[int, str] = {}
        for outcome in self.crew.do(task, str(self.work.path), left) if left else ():
            if outcome.value is None:
                failed[outcome.number] = outcome.error
                continue
            self.finished.note(stage, outcome.number, outcome.value)
            done, moved = done + 1, moved + points.get(outcome.number, 0)
            speed = (moved - before) / max(1e-9, monotonic() - began)
            self.tell(Standing(stage, done, len(numbers), moved, everything, speed))
        return failed

    def _must(self, stage: str, task: Task, numbers: Sequence[int]) -> None:
        """Do a stage of which nothing may fail."""
        known = self.finished.of(stage)
        left = [number for number in numbers if number not in known]
        for reason in self._each(stage, task, numbers, left).values():
            raise InputError(f"{stage} stopped: {reason}")

    def _segments(self) -> NDArray[np.void]:
        """Which part of which sorted file belongs to which tile: (K,) of `SEGMENT`."""
        pieces = [np.zeros(0, dtype=SEGMENT)]
        for part, value in sorted(self.finished.of(SORTING).items()):
            piece = np.zeros(len(value["tiles"]), dtype=SEGMENT)
            piece["tile"], piece["part"], piece["count"] = value["tiles"], part, value["counts"]
            piece["first"] = np.cumsum(piece["count"]) - piece["count"]
            pieces.append(piece)
        return np.concatenate(pieces)

    def _save_reaches(self) -> None:
        reaches = np.zeros(len(self.work.tiling()))
        for tile, value in self.finished.of(MEASURING).items():
            reaches[tile] = value["reach"]
        self.work.save("reaches", reaches)

    def _denoise(self, segments: NDArray[np.void], tiles: Sequence[int]) -> dict[int, str]:
        """Denoise all tiles; returns why some could not be."""
        points = dict.fromkeys(tiles, 0)
        for tile, count in zip(segments["tile"].tolist(), segments["count"].tolist()):
            points[tile] += count
        known = self.finished.of(DENOISING)
        left = [tile for tile in tiles if not self._is_kept(tile, known.get(tile))]
        # Large ones first: a large one that is begun last would keep all others waiting.
        left.sort(key=lambda tile: -points[tile])
        return self._each(DENOISING, tasks.denoise_one, tiles, left, points)

    def _is_kept(self, tile: int, noted: Value | None) -> bool:
        """Whether the result of a tile is there as it was written."""
        if noted is None:
            return False
        try:
            self.work.read_result(tile, noted["checksum"])
        except DamagedResult:
            return False
        return True

    def _write(self, segments: NDArray[np.void], bad_tiles: dict[int, str]) -> dict[int, str]:
        """Write every output that can be; returns why the others could not be."""
        failed: dict[int, str] = {}
        for part, described in enumerate(self.plan.parts):
            own = set(segments["tile"][segments["part"] == part].tolist())
            for tile in sorted(own & set(bad_tiles)):
                failed[part] = (
                    f"{described.source}: not written, because tile {tile} was given up: "
                    f"{bad_tiles[tile]}; what is finished is kept; the same command tries again"
                )
        parts = [part for part in range(len(self.plan.parts)) if part not in failed]
        left = [part for part in parts if not self.run.is_written(part)]
        for part, reason in self._each(WRITING, tasks.merge_part, parts, left).items():
            failed[part] = f"{self.plan.parts[part].source}: not written: {reason}"
        return failed
