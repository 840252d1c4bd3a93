"""Room `scans`: how much memory a run needs, and how it is cut to fit."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from pointmend.cloud.files import errors_about, format_of, open_pieces
from pointmend.denoising.options import HALO, SamplerOptions
from pointmend.errors import InputError, NotInPieces
from pointmend.geometry.tiles import tiles_for

# Measured with `python -m benchmarks.sizes` (default model): the program and its libraries, each
# point of a tile and its surroundings, and each point of a cloud held in memory.
PROGRAM = 400_000_000
PER_REGION_POINT = 3_500
PER_POINT = 250

TILE_POINTS = SamplerOptions.tile_points
FEWEST_TILE_POINTS = 4_000

# Seconds of one thread for a point and a step, surroundings of tiles included.
SECONDS = 3.2e-5

# Bytes a point takes at least, to guess how many there are in files that do not say so up front.
_LEAST_BYTES = {"NumPy archive": 6, "PCD": 6, "E57": 3, "KITTI": 16}

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class Budget:
    """
    How a cloud is worked on.

    Attributes
    ----------
    points : of the cloud.
    tile_points : of a tile at most.
    streamed : whether the cloud itself stays on disk.
    memory : bytes needed.
    counted : whether the number of points is known, or the most there can be.
    """

    points: int
    tile_points: int
    streamed: bool
    memory: int
    counted: bool = True

    @property
    def tiles(self) -> int:
        """How many tiles there are, about."""
        return tiles_for(self.points, self.tile_points)


def parse_size(text: str) -> int:
    """Bytes, from what people write: 4G, 800M, 1.5 GB."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        raise InputError(f"{text!r} is no amount of memory; write 4G or 800M")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def memory_from(text: str | None) -> int | None:
    """Bytes a user allows, None for the default."""
    return None if text is None else parse_size(text)


def default_memory() -> int:
    """Half of what the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return 4 * 10**9


def plan(points: int, bytes_on_disk: int, memory: int, can_stream: bool) -> Budget:
    """
    Fit a cloud into an amount of memory.

    Parameters
    ----------
    points : of the cloud.
    bytes_on_disk : size of its file, which says how much its attributes take.
    memory : bytes that may be used.
    can_stream : whether its format can be read in pieces.
    """
    held = points * PER_POINT + 4 * bytes_on_disk
    whole = PROGRAM + held + PER_REGION_POINT * region_points(points, TILE_POINTS)
    if whole <= memory:
        return Budget(points, TILE_POINTS, False, whole)
    kept = 0 if can_stream else held
    largest = max(0, memory - PROGRAM - kept) / PER_REGION_POINT
    tile_points = min(TILE_POINTS, int(max(0.0, math.sqrt(largest) - 2.0 * HALO) ** 2))
    if tile_points < FEWEST_TILE_POINTS:
        fewest = region_points(points, FEWEST_TILE_POINTS)
        least = PROGRAM + kept + PER_REGION_POINT * fewest
        hint = "" if can_stream else "; as LAS, LAZ or binary PLY it would need less"
        raise InputError(
            f"{points:,} points need {megabytes(least)} of memory at least{hint} (--max-memory)"
        )
    needed = PROGRAM + kept + PER_REGION_POINT * region_points(points, tile_points)
    return Budget(points, tile_points, can_stream, needed)


def plan_file(source: Path, max_memory: int | None) -> Budget:
    """How a file will be worked on: what the preflight line says."""
    chosen = format_of(source)
    memory = default_memory() if max_memory is None else max_memory
    with errors_about(source):
        size = source.stat().st_size
    try:
        with open_pieces(source) as reader:
            return plan(reader.count, size, memory, can_stream=True)
    except NotInPieces:
        most = max(1, size // _LEAST_BYTES.get(chosen.name, 12))
        return replace(plan(most, size, memory, can_stream=False), counted=False)


def region_points(points: int, tile_points: int) -> int:
    """Points of a square tile of a surface with its surroundings on all sides."""
    if points <= tile_points:
        return points
    return min(points, int((math.sqrt(tile_points) + 2.0 * HALO) ** 2))


def expected_seconds(budget: Budget, steps: int, threads: int) -> float:
    """About how long it will take."""
    return budget.points * (steps + 1) * SECONDS / max(1, threads)


def megabytes(size: int) -> str:
    """An amount of memory as people read it."""
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{size / 1e6:.0f} MB"
