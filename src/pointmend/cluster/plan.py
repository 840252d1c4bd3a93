"""Room `cluster`: what is to be done to which files, as plain values that can be compared."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pointmend import __version__
from pointmend.cloud.files import errors_about, format_of, open_pieces, why_not_in_pieces
from pointmend.denoising.options import SamplerOptions
from pointmend.denoising.settings import Settings
from pointmend.errors import InputError, NotInPieces
from pointmend.scans.marks import Marks, check_marks

# Raised when files in a work folder change their meaning, so that older ones are not continued.
LAYOUT = 1

# Of the beginning and of the end of a file, to tell it from another of the same size and time.
TASTE = 65_536


@dataclass(frozen=True)
class Fingerprint:
    """What tells a file from what it was before: size, time of change, and a taste of its bytes."""

    size: int
    changed: int
    taste: str


def fingerprint(path: Path) -> Fingerprint:
    """Look at a file, whatever its size, in a moment."""
    with errors_about(path), path.open("rb") as file:
        known = os.fstat(file.fileno())
        taste = hashlib.sha256(file.read(TASTE))
        file.seek(max(0, known.st_size - TASTE))
        taste.update(file.read(TASTE))
    return Fingerprint(known.st_size, known.st_mtime_ns, taste.hexdigest())


@dataclass(frozen=True)
class Part:
    """
    One file of the cloud.

    Attributes
    ----------
    source, target : absolute paths, the same for every worker.
    points : rows of the file.
    seen : the file as it was when the plan was made.
    """

    source: str
    target: str
    points: int
    seen: Fingerprint

    def check_unchanged(self) -> None:
        """Refuse to mix two states of a file."""
        if fingerprint(Path(self.source)) != self.seen:
            raise InputError(f"{self.source} was changed meanwhile; run the same command again")


@dataclass(frozen=True)
class Plan:
    """
    What is to be done: two plans are the same if all of this is.

    Attributes
    ----------
    parts : the files, which are one cloud together.
    settings, options, marks : as for a single file.
    model : digest of the weights and their card.
    device : where workers compute.
    threads : CPU threads of a worker; results depend on it in the last digits.
    version, layout : of the code.
    """

    parts: tuple[Part, ...]
    settings: Settings
    options: SamplerOptions
    marks: Marks
    model: str
    device: str
    threads: int
    version: str = __version__
    layout: int = LAYOUT

    @property
    def points(self) -> int:
        """Rows of all files."""
        return sum(part.points for part in self.parts)

    @property
    def folder(self) -> Path:
        """Where the outputs go."""
        return Path(self.parts[0].target).parent

    @property
    def digest(self) -> str:
        """Stands for all of the plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """The plan that `to_dict` was asked for."""
        parts = (p | {"seen": Fingerprint(**p["seen"])} for p in values["parts"])
        return cls(
            **{
                **values,
                "parts": tuple(Part(**part) for part in parts),
                "settings": Settings(**values["settings"]),
                "options": SamplerOptions(**values["options"]),
                "marks": Marks(**values["marks"]),
            }
        )


def look_at_parts(pairs: Sequence[tuple[Path, Path]], marks: Marks) -> tuple[Part, ...]:
    """
    The files of a plan, after making sure that all can be worked on.

    Parameters
    ----------
    pairs : inputs and their outputs.
    marks : what outputs will say about their points.
    """
    folders = {Path(os.path.realpath(target.parent)) for _, target in pairs}
    if len(folders) > 1:
        raise InputError("files that are one cloud go to one folder; name it with --out")
    inputs = {Path(os.path.realpath(source)) for source, _ in pairs}
    parts = []
    for source, target in pairs:
        if Path(os.path.realpath(target)) in inputs:
            raise InputError(f"{target} is an input; files that are one cloud go to another folder")
        if format_of(target).pieces is None:
            raise InputError(why_not_in_pieces(target))
        try:
            with open_pieces(source) as reader:
                seen = fingerprint(source)
                check_marks(next(reader.pieces(1)), marks, source)
                place = Path(os.path.abspath(source)), Path(os.path.abspath(target))  # noqa: PTH100
                parts.append(Part(str(place[0]), str(place[1]), reader.count, seen))
        except NotInPieces as error:
            raise InputError(f"{error}; convert it to LAS, LAZ or binary PLY first") from error
    return tuple(parts)
