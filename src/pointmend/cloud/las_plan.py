"""Room `cloud`: how the points of a cloud become the records of a LAS file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.las_header import EXTRA_BYTES, LASZIP, WAVEFORMS, Header, Record
from pointmend.cloud.las_layout import LasLayout
from pointmend.cloud.las_points import (
    NEW_FORMATS,
    OLD_FORMATS,
    Array,
    Extra,
    describe,
    dimensions,
    holding,
    record_type,
    store,
)
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

COLOURS = ("red", "green", "blue")
_WIDEST = 3  # LAS has numbers, pairs and triples; bytes may be more
_LARGEST_RECORD = 0xFFFF
_MOST_DESCRIBED = 0xFFFF // 192
_LIMITS = np.iinfo(np.int32)

# Records that say which points lie where; for points that moved or left they would lie.
_INDICES = {"copc": "COPC index", "LAStools": "LAX index"}
_LAX = ("LAStools", 30)


@dataclass(frozen=True)
class Kind:
    """What an attribute is: its type, and c if it is (N, c), else 1."""

    dtype: np.dtype[Any]
    width: int

    @classmethod
    def of(cls, values: Array) -> Kind:
        """Return the kind of an attribute (N,) or (N, c); one of shape (N, 1) counts as (N,)."""
        return cls(values.dtype, values.shape[1] if values.ndim == 2 else 1)

    @property
    def stored(self) -> np.dtype[Any] | None:
        """The type LAS keeps it in, which holds every value; None if there is no such type."""
        if self.width == 0:
            return None
        if self.dtype.kind == "b":
            return np.dtype(np.uint8)
        if self.dtype == np.float16:
            return np.dtype(np.float32)
        return self.dtype if self.dtype.kind in "iuf" and self.dtype.itemsize <= 8 else None


@dataclass(frozen=True)
class Source:
    """
    Where the values of a dimension come from.

    Parameters
    ----------
    attribute : str
        Of the cloud.
    part : int or None
        Which column of an attribute (N, c), if not all of them.
    factor : int
        What they are multiplied with: 257 makes 8-bit colours fill the 16 bits LAS has.
    """

    attribute: str
    part: int | None = None
    factor: int = 1

    def values(self, attributes: Mapping[str, Array]) -> Array:
        """Return the values, (N,) or (N, c)."""
        if self.attribute not in attributes:
            raise FileFormatError(
                f"attribute '{self.attribute}' is missing from some of the points"
            )
        found = attributes[self.attribute]
        if self.part is not None:
            found = found[:, self.part]
        elif found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        return found if self.factor == 1 else found.astype(np.uint16) * np.uint16(self.factor)


@dataclass(frozen=True)
class Plan:
    """
    Everything needed to write a LAS file but the points.

    Parameters
    ----------
    header : Header
        With scale, offset, point format and record length; counts and places come later.
    records, extended_records : tuple of Record
        Without the one that tells how points are compressed.
    padding : bytes
        What stands between `records` and the points.
    extras : tuple of Extra
        The extra bytes of each record.
    sources : dict of Source
        By the name of a dimension or extra; a dimension without one is 0 for all points.
    """

    header: Header
    records: tuple[Record, ...]
    padding: bytes
    extended_records: tuple[Record, ...]
    extras: tuple[Extra, ...]
    sources: dict[str, Source] = field(default_factory=dict)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Structured type of a record."""
        return record_type(self.header.point_format, self.extras)

    def pack(self, cloud: PointCloud) -> Array:
        """Return the records (N,) of the points of `cloud`."""
        records = np.zeros(len(cloud), self.dtype)
        scale, offset = self.header.numbers("scale"), self.header.numbers("offset")
        for axis, name in enumerate("XYZ"):
            records[name] = on_grid(cloud.positions[:, axis], scale[axis], offset[axis], axis)
        for d in dimensions(self.header.point_format):
            if d.name in self.sources:
                store(records, d, self.sources[d.name].values(cloud.attributes))
        for i, extra in enumerate(self.extras):
            values = self.sources[extra.name].values(cloud.attributes)
            kind = Kind.of(values)
            if kind.stored is None or kind.stored.newbyteorder("<") != extra.dtype:
                raise FileFormatError(
                    f"attribute '{self.sources[extra.name].attribute}' is {values.dtype} here "
                    f"and {extra.dtype.name} elsewhere; give it one type"
                )
            records[f"extra_{i}"] = values
        return records


def on_grid(
    values: npt.NDArray[np.float64], scale: float, offset: float, axis: int
) -> npt.NDArray[np.float64]:
    """Return the whole numbers nearest to coordinates `values` (N,) on a grid of 32-bit steps."""
    missing = int(np.count_nonzero(~np.isfinite(values)))
    if missing:
        raise FileFormatError(
            f"{missing} points have no finite {'xyz'[axis]}, which LAS cannot hold; "
            "drop them, or write PLY or PCD"
        )
    steps = np.rint((values - offset) / scale)
    outside = (steps < _LIMITS.min) | (steps > _LIMITS.max)
    if outside.any():
        raise FileFormatError(
            f"{np.count_nonzero(outside)} points do not fit: {'xyz'[axis]} = "
            f"{values[outside][0]:.12g} is out of reach of the file's scale {scale:g} and "
            f"offset {offset:g}; write PLY, or a LAS file made anew"
        )
    return steps


def plan_again(layout: LasLayout, attributes: Mapping[str, Array]) -> Plan:
    """
    Plan a file like the one `layout` is from, for points that may have other attributes now.

    New colours or times change the point format to one that has them, everything else that is new
    becomes extra bytes, and what is gone is written as 0 or, if it was extra bytes, left out.
    """
    header = layout.header
    kinds = {name: Kind.of(values) for name, values in attributes.items()}
    family = OLD_FORMATS if header.point_format in OLD_FORMATS else NEW_FORMATS
    wanted = {"gps_time"} & kinds.keys() | colours_in(kinds, family)
    point_format = holding(family, wanted, header.point_format)
    sources = {
        d.name: Source(d.name, factor=colour_factor(d.name, kinds))
        for d in dimensions(point_format)
        if d.name in kinds
    }
    extras = [e for e in layout.extras if e.name in attributes and e.fits(attributes[e.name])]
    # What nobody described has to stand last, because descriptions count from the first byte.
    unknown = [e for e in extras if not e.description]
    known = [e for e in extras if e.description]
    sources |= {e.name: Source(e.name) for e in extras}
    rest = {name: kind for name, kind in kinds.items() if name not in sources}
    taken = sources.keys() | {d.name for d in dimensions(point_format)}
    new, new_sources = describe_all(rest, taken)
    changed = (*known, *new, *unknown)
    records = tuple(r for r in layout.records if r.key != LASZIP and _index(r) is None)
    if changed != layout.extras:
        records = _described(records, changed)
    header = with_extras(header, point_format, changed)
    kept = (r for r in layout.extended_records if r.key != WAVEFORMS and _index(r) is None)
    return Plan(header, records, layout.padding, tuple(kept), changed, sources | new_sources)


def _index(record: Record) -> str | None:
    """Say which index of the points a record is, or None if it is something else."""
    is_index = record.key[0] == "copc" or record.key == _LAX
    return _INDICES[record.key[0]] if is_index else None


def lost_indices(layout: LasLayout) -> list[str]:
    """Name the indices of a file that are not written again."""
    found = map(_index, (*layout.records, *layout.extended_records))
    return sorted({name for name in found if name})


def colours_in(kinds: Mapping[str, Kind], family: range) -> set[str]:
    """Return which colour dimensions of `family` the attributes fill; red alone is no colour."""

    def is_channel(name: str) -> bool:
        kind = kinds.get(name)
        return kind is not None and kind.dtype.kind in "iu" and kind.width == 1

    if not all(map(is_channel, COLOURS)):
        return set()
    return {*COLOURS, "nir"} if is_channel("nir") and family is NEW_FORMATS else {*COLOURS}


def colour_factor(name: str, kinds: Mapping[str, Kind]) -> int:
    """Return what 8-bit colours are multiplied with, 1 for all other attributes."""
    return 257 if name in (*COLOURS, "nir") and kinds[name].dtype == np.uint8 else 1


def describe_all(
    kinds: Mapping[str, Kind], taken: Collection[str]
) -> tuple[list[Extra], dict[str, Source]]:
    """
    Return the extra bytes that hold attributes of `kinds`, and where their values come from.

    One whose name is that of a dimension (because its type is not) gets its type appended.
    """
    extras: list[Extra] = []
    sources: dict[str, Source] = {}
    for attribute, kind in kinds.items():
        if kind.stored is None:
            continue
        name = f"{attribute}_{kind.stored.name}" if attribute in taken else attribute
        split = kind.width > (255 if kind.stored == np.uint8 else _WIDEST)
        width = 0 if split or kind.width == 1 else kind.width
        for part in range(kind.width) if split else (None,):
            part_name = name if part is None else f"{name}_{part}"
            extra = describe(part_name, kind.stored, width, taken | sources.keys())
            extras.append(extra)
            sources[extra.name] = Source(attribute, part)
    return extras, sources


def with_extras(header: Header, point_format: int, extras: Collection[Extra]) -> Header:
    """Return `header` for records of `point_format` with `extras`, if a record can be so long."""
    length = record_type(point_format, tuple(extras)).itemsize
    if length > _LARGEST_RECORD:
        raise FileFormatError(
            f"attributes take {length} bytes per point, LAS has room for {_LARGEST_RECORD}; "
            "leave some out"
        )
    return header.with_format(point_format, length, compressed=False)


def _described(records: tuple[Record, ...], extras: Collection[Extra]) -> tuple[Record, ...]:
    """Return `records` with `extras` described in the place of those described before."""
    new = describing(extras)
    keys = [r.key for r in records]
    place = keys.index(EXTRA_BYTES) if EXTRA_BYTES in keys else len(records)
    return (*records[:place], *new, *(r for r in records[place:] if r.key != EXTRA_BYTES))


def describing(extras: Collection[Extra]) -> tuple[Record, ...]:
    """Return the record that describes `extras`; none if there is nothing to describe."""
    described = [extra.description for extra in extras if extra.description]
    if len(described) > _MOST_DESCRIBED:
        raise FileFormatError(
            f"{len(described)} attributes are not among those every LAS file has; "
            f"it has room for {_MOST_DESCRIBED}, so leave some out"
        )
    data = b"".join(described)
    return (Record.new(EXTRA_BYTES, "Extra Bytes Record", data),) if data else ()
