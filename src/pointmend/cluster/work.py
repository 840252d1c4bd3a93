"""Room `cluster`: the folder in which a plan is worked on, and what is finished of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointmend.atomic import write_atomically
from pointmend.denoising.moved import Moved
from pointmend.errors import InputError
from pointmend.geometry.tiles import Tiling
from pointmend.scans.scratch import RESULT

from .plan import Plan

Float64 = NDArray[np.float64]

# Where the points of a tile lie: in which file's scratch, from which place on, how many.
SEGMENT = np.dtype([("tile", "<i8"), ("part", "<i8"), ("first", "<i8"), ("count", "<i8")])

PREFIX = ".pointmend-plan-"
FINISHED = "finished.jsonl"
LOCK = "lock"


class DamagedResult(InputError):
    """A tile's result is not what was written."""


@dataclass(frozen=True)
class WorkFolder:
    """
    A plan's folder beside its outputs, which all workers can reach.

    Each file in it is written by one process, and is there completely or not at all.

    manifest.json    the plan
    finished.jsonl   one line for everything that is finished, with checksums of tiles
    model.*          the weights
    sample/          points of each file that stand for it
    tiling.npz       how space is divided
    sorted/          the points of each file, tile by tile
    segments.npy     where the points of each tile lie
    reaches.npy      how far each tile matters to others
    survey.json      spacing and noise
    tiles/           what became of each tile's points
    """

    path: Path

    @classmethod
    def of(cls, plan: Plan) -> WorkFolder:
        """The folder that belongs to a plan, and to no other."""
        return cls(plan.folder / f"{PREFIX}{plan.digest[:16]}")

    @property
    def model(self) -> Path:
        """The weights."""
        return self.path / "model.safetensors"

    @property
    def survey(self) -> Path:
        """Spacing and noise, as JSON."""
        return self.path / "survey.json"

    def sample(self, part: int) -> Path:
        """Points of a file that stand for it."""
        return self.path / "sample" / f"{part}.npy"

    def sorted(self, part: int) -> Path:
        """The points of a file, tile by tile (a folder of `ScratchStore`)."""
        return self.path / "sorted" / str(part)

    def tile(self, tile: int) -> Path:
        """What became of a tile's points."""
        return self.path / "tiles" / f"{tile}.result"

    def finished(self) -> Finished:
        """What is finished."""
        return Finished(self.path / FINISHED)

    def begin(self, plan: Plan, weights: Path) -> None:
        """Make the folder for a plan, or find it as it was left."""
        if (self.path / "manifest.json").exists():
            return
        for name in ("sample", "sorted", "tiles"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        for suffix in (".safetensors", ".json"):
            content = weights.with_suffix(suffix).read_bytes()
            write_atomically(self.model.with_suffix(suffix), content)
        manifest = json.dumps(plan.to_dict(), indent=1) + "\n"
        write_atomically(self.path / "manifest.json", manifest.encode())

    def plan(self) -> Plan:
        """The plan."""
        try:
            text = (self.path / "manifest.json").read_text()
        except FileNotFoundError:
            raise InputError(
                f"{self.path} cannot be seen from here; the output folder and the inputs have to "
                "lie on a file system that all workers share"
            ) from None
        return Plan.from_dict(json.loads(text))

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Keep an array as NAME.npy."""
        self.save_at(self.path / f"{name}.npy", array)

    def save_at(self, path: Path, array: NDArray[Any]) -> None:
        """Keep an array in a file of this folder."""
        held = io.BytesIO()
        np.save(held, array, allow_pickle=False)
        write_atomically(path, held.getvalue(), shared=True)

    def load(self, name: str) -> NDArray[Any]:
        """The array that was kept under a name."""
        return np.asarray(np.load(self.path / f"{name}.npy", allow_pickle=False))

    def save_tiling(self, tiling: Tiling) -> None:
        """Keep how space is divided."""
        held = io.BytesIO()
        np.savez(held, **vars(tiling))
        write_atomically(self.path / "tiling.npz", held.getvalue())

    def tiling(self) -> Tiling:
        """How space is divided."""
        with np.load(self.path / "tiling.npz", allow_pickle=False) as held:
            return Tiling(**{name: held[name] for name in held.files})

    def write_result(self, tile: int, moved: Moved) -> str:
        """Keep what became of a tile's points; returns a checksum of it."""
        found = np.empty(len(moved.shift), dtype=RESULT)
        found["shift"], found["share"] = moved.shift, moved.shares
        found["sigma"], found["outlier"] = moved.sigma, moved.outlier
        head = {"tile": tile, "rows": len(found), "times": moved.times}
        content = json.dumps(head).encode() + b"\n" + found.tobytes()
        checksum = hashlib.sha256(content).hexdigest()
        write_atomically(self.tile(tile), checksum.encode() + b"\n" + content, shared=True)
        return checksum

    def read_result(self, tile: int, checksum: str | None = None) -> Moved:
        """
        What became of a tile's points.

        Parameters
        ----------
        checksum : that it must have; its own by default.

        Raises
        ------
        DamagedResult
            If it is not there, or not what was written.
        """
        try:
            written, _, content = self.tile(tile).read_bytes().partition(b"\n")
        except FileNotFoundError:
            raise DamagedResult(f"the result of tile {tile} is missing in {self.path}") from None
        wanted = written.decode("ascii", "replace") if checksum is None else checksum
        if hashlib.sha256(content).hexdigest() != wanted:
            raise DamagedResult(
                f"{self.tile(tile)} is damaged; delete it and run the command again"
            )
        head, _, rows = content.partition(b"\n")
        found = np.frombuffer(rows, RESULT)
        return Moved(
            np.ascontiguousarray(found["shift"]),
            found["share"].astype(np.float64),
            found["sigma"].astype(np.float64),
            np.ascontiguousarray(found["outlier"]),
            tuple(json.loads(head)["times"]),
        )

    @property
    def is_cleared(self) -> bool:
        """Whether all that tiles need is gone, because every output was written."""
        return (self.path / "manifest.json").exists() and not (self.path / "tiles").is_dir()

    def clear(self, keep: Sequence[str] = ("manifest.json", FINISHED, LOCK)) -> None:
        """Remove all but the files to keep; by default these take next to no room."""
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name not in keep:
                entry.unlink()

    def restart(self) -> None:
        """Forget all that was done."""
        self.clear(keep=(LOCK,))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs of the same plan out while the block runs."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # a system without such locks
            yield
            return
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another run of the same command is under way (in {self.path})"
                ) from None
            yield


class Finished:
    """
    What is finished of a plan, one line each in a file that only grows.

    A line that was cut off by a crash is no line: what it would have said is done again.

    Parameters
    ----------
    path : of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[tuple[str, int], dict[str, Any]] = {}
        whole = 0
        for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
            try:
                entry = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                entry = None
            if entry is None:
                break
            self._values[entry["stage"], entry["number"]] = entry["value"]
            whole += len(line)
        if path.exists() and path.stat().st_size > whole:
            os.truncate(path, whole)

    def note(self, stage: str, number: int, value: Mapping[str, Any]) -> None:
        """Write down that something is finished."""
        self._values[stage, number] = dict(value)
        entry = {"stage": stage, "number": number, "value": dict(value)}
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def of(self, stage: str) -> dict[int, dict[str, Any]]:
        """What is finished of a stage, by number."""
        return {n: value for (s, n), value in self._values.items() if s == stage}
