"""Room `cloud`: the point cloud itself, float64 positions with everything that belongs to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pointmend.errors import InputError

Index = int | np.integer[Any] | slice | Sequence[int] | Sequence[bool] | npt.NDArray[Any]


class PerPoint(ABC):
    """Metadata that has one entry per point and therefore follows when points are selected."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, index: npt.NDArray[np.intp]) -> Self:
        """Return the metadata of the points `index` (M,), in that order."""


@dataclass(frozen=True, eq=False, repr=False)
class PointCloud:
    """
    Points with attributes; the order of the points is part of the data.

    Parameters
    ----------
    positions : (N, 3) float64
        Coordinates as the file had them (UTM metres stay UTM metres). NaN and inf are legal.
    attributes : dict of (N,) or (N, c) arrays
        Everything else known per point, in its own dtype, in the order of the file.
    metadata : dict
        What belongs to the whole cloud. A format keeps what it needs for writing the same kind of
        file again under its own name (`"ply"`, `"text"`, ...). Values that are `PerPoint` follow
        the points.
    """

    positions: npt.NDArray[np.float64]
    attributes: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        positions = _as_positions(self.positions)
        attributes = {
            _checked_name(name): _as_attribute(name, values, len(positions))
            for name, values in self.attributes.items()
        }
        for name, value in self.metadata.items():
            if isinstance(value, PerPoint) and len(value) != len(positions):
                raise InputError(
                    f"metadata '{name}' belongs to a cloud of {len(value)} points, "
                    f"this one has {len(positions)}; select points with cloud[index]"
                )
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "attributes", attributes)
        object.__setattr__(self, "metadata", dict(self.metadata))

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        listed = [
            f"{name} {values.dtype}{list(values.shape[1:]) or ''}"
            for name, values in self.attributes.items()
        ]
        return f"PointCloud({len(self)} points, attributes: {', '.join(listed) or 'none'})"

    def __getitem__(self, index: Index) -> PointCloud:
        """
        Select points by number, slice, mask (N,) or index array (M,); all attributes follow.

        A single number gives a cloud of one point.
        """
        chosen = _as_selection(index, len(self))
        metadata = self.metadata
        if any(isinstance(value, PerPoint) for value in metadata.values()):
            rows = np.arange(len(self), dtype=np.intp)[chosen]
            metadata = {
                name: value.take(rows) if isinstance(value, PerPoint) else value
                for name, value in metadata.items()
            }
        return PointCloud(
            self.positions[chosen],
            {name: values[chosen] for name, values in self.attributes.items()},
            metadata,
        )

    def with_positions(self, positions: npt.ArrayLike) -> PointCloud:
        """Return the same points, attributes and metadata at other `positions` (N, 3)."""
        moved = _as_positions(positions)
        if len(moved) != len(self):
            raise InputError(
                f"new positions have shape {moved.shape}, the cloud needs ({len(self)}, 3)"
            )
        return replace(self, positions=moved)

    def with_attribute(self, name: str, values: npt.ArrayLike) -> PointCloud:
        """Return the cloud with attribute `name` set to `values`, (N,) or (N, c)."""
        return replace(self, attributes={**self.attributes, name: np.asarray(values)})

    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return lowest and highest finite coordinate, (3,) each; NaN where an axis has none."""
        finite = np.isfinite(self.positions)
        low = np.where(finite, self.positions, np.inf).min(axis=0, initial=np.inf)
        high = np.where(finite, self.positions, -np.inf).max(axis=0, initial=-np.inf)
        some = finite.any(axis=0)
        return np.where(some, low, np.nan), np.where(some, high, np.nan)


def _as_positions(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"positions must be real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(f"positions must have shape (N, 3), got {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InputError(f"an attribute's name must be printable text, got {name!r}")
    if name in ("x", "y", "z"):
        raise InputError(f"attribute '{name}' would hide a coordinate; give it another name")
    return name


def _as_attribute(name: str, values: npt.ArrayLike, count: int) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim not in (1, 2) or len(array) != count:
        raise InputError(
            f"attribute '{name}' must have shape ({count},) or ({count}, c), got {array.shape}"
        )
    if array.dtype.hasobject or array.dtype.kind == "V":
        raise InputError(f"attribute '{name}' must be a plain array, got dtype {array.dtype}")
    return array


def _as_selection(index: Index, count: int) -> slice | npt.NDArray[Any]:
    if isinstance(index, slice):
        return index
    chosen = np.asarray(index)
    if chosen.ndim == 0 and chosen.dtype.kind in "iu":
        chosen = chosen[np.newaxis]
    if chosen.size == 0 and chosen.dtype.kind == "f":  # what numpy makes of an empty list
        chosen = chosen.astype(np.intp)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
        raise InputError(
            "select points by number, slice, mask (N,) or index array (M,), "
            f"got shape {chosen.shape} of {chosen.dtype}"
        )
    if chosen.dtype.kind == "b" and len(chosen) != count:
        raise InputError(f"mask has shape {chosen.shape}, the cloud needs ({count},)")
    return chosen
