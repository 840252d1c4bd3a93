"""Room `cloud`: LAS, LAZ and COPC files; all that is not a coordinate is kept bit for bit."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pointmend.cloud import las_laz
from pointmend.cloud.format import Format, Pieces, PieceWriter
from pointmend.cloud.las_layout import LasLayout, farthest, read_layout
from pointmend.cloud.las_new import Summary, grid, plan_new
from pointmend.cloud.las_plan import Kind, Plan, lost_indices, plan_again
from pointmend.cloud.las_points import Array, unpack
from pointmend.cloud.las_writer import LasWriter, Spool, rows_per_step
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError


class LasReader:
    """An open LAS or LAZ file; `layout` is what it has beyond its points."""

    def __init__(self, path: Path, layout: LasLayout) -> None:
        self._path = path
        self.layout = layout

    @property
    def count(self) -> int:
        """Points of the whole file."""
        return self.layout.header.count

    def records(self, rows: int) -> Iterator[Array]:
        """Yield all records in order, `rows` at a time."""
        header, dtype = self.layout.header, self.layout.dtype
        laszip = self.layout.laszip
        with self._path.open("rb") as file:
            if header.is_compressed and header.count and laszip is not None:
                yield from las_laz.decompressed(file, header, laszip, dtype, rows)
                return
            file.seek(header.number("points_at"))
            for start in range(0, header.count, rows):
                records = np.empty(min(rows, header.count - start), dtype)
                if file.readinto(records.view(np.uint8).data) < records.nbytes:
                    raise FileFormatError("LAS file became shorter while it was read")
                yield records

    def pieces(self, rows: int) -> Iterator[PointCloud]:
        """
        Yield the points in file order, `rows` at a time.

        A file without points gives one piece without points, from which a file can be made again.
        """
        if self.count == 0:
            yield self.cloud(np.empty(0, self.layout.dtype))
        for records in self.records(rows):
            yield self.cloud(records)

    def cloud(self, records: Array) -> PointCloud:
        """Return the points of `records` (N,)."""
        layout = self.layout
        positions, attributes = unpack(
            records, layout.header.point_format, layout.extras, layout.scale, layout.offset
        )
        return PointCloud(positions, attributes, {"las": layout})


@contextmanager
def open_(path: Path) -> Iterator[LasReader]:
    """Open a file to read its points in pieces."""
    with path.open("rb") as file:
        layout = read_layout(file)
    # Every pass over the points opens the file for itself, so that passes may run side by side.
    yield LasReader(path, layout)


def read(path: Path) -> PointCloud:
    """
    Read a LAS or LAZ file of version 1.0 to 1.4, point format 0 to 10.

    Positions are X * scale + offset, as float64. Attributes have the names laspy uses and the
    numbers that are stored: bit fields are taken apart, scan angles stay whole numbers, and extra
    bytes with a scale are not scaled. COPC files are read as the LAZ files they are.
    """
    with open_(path) as reader:
        columns: dict[str, list[Array]] = {}
        # A count is only believed as far as there were points: memory grows with them.
        for piece in reader.pieces(rows_per_step(reader.layout.dtype.itemsize)):
            columns.setdefault("", []).append(piece.positions)
            for name, values in piece.attributes.items():
                columns.setdefault(name, []).append(values)
    whole = {name: np.concatenate(columns.pop(name)) for name in list(columns)}
    return PointCloud(whole.pop(""), whole, {"las": reader.layout})


def _layout_of(cloud: PointCloud) -> LasLayout | None:
    layout = cloud.metadata.get("las")
    return layout if isinstance(layout, LasLayout) else None


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write a LAS file, or a LAZ file if that is its suffix.

    A cloud from a LAS or LAZ file gets that file's version, point format, scale, offset, records
    and header, and points that did not move get the integers they had; points that moved are
    rounded to the file's grid. Counts and bounds are computed anew. For other clouds `plan_new`
    says which kind of file they become, and `grid` how fine it is.
    """
    layout = _layout_of(cloud)
    plan = plan_new(Summary.of(cloud)) if layout is None else plan_again(layout, cloud.attributes)
    with _writing(plan, len(cloud), path) as writer:
        writer.append(cloud)


@contextmanager
def create(template: PointCloud, count: int, path: Path) -> Iterator[PieceWriter]:
    """
    Create a file whose `count` points come in pieces.

    A cloud from another format waits in a temporary file beside it until all points are there:
    the grid has to fit them all.
    """
    layout = _layout_of(template)
    if layout is not None:
        with _writing(plan_again(layout, template.attributes), count, path) as writer:
            yield writer
        return
    with tempfile.TemporaryFile(dir=path.parent) as file:
        spool = Spool(file, template)
        yield spool
        with _writing(plan_new(spool.summary), count, path) as writer:
            for piece in spool.pieces():
                writer.append(piece)


@contextmanager
def _writing(plan: Plan, count: int, path: Path) -> Iterator[LasWriter]:
    compress = path.suffix.lower() == ".laz"
    with path.open("wb") as file:
        writer = LasWriter(plan, file, compress)
        yield writer
        writer.finish(count)
    if compress:
        _check_compression(path, writer.checksum)


def _check_compression(path: Path, checksum: int) -> None:
    """
    Make sure that decompressing gives the records that were compressed.

    Not all compressors are free of faults: that of lazrs 0.8.2 spoils the waveform fields of files
    with several scanner channels.
    """
    found = 0
    with open_(path) as reader:
        for records in reader.records(rows_per_step(reader.layout.dtype.itemsize)):
            found = zlib.crc32(records.view(np.uint8).data, found)
    if found != checksum:
        raise FileFormatError("LAZ compression did not keep all points as they are; write .las")


def precision(cloud: PointCloud) -> float:
    """Return how far writing may move a coordinate: half a step of the grid, and rounding."""
    layout = _layout_of(cloud)
    if layout is None:
        step, offset = grid(Summary.of(cloud))
        scale = np.full(3, step)
    else:
        scale, offset = layout.scale, layout.offset
    return float(np.max(scale / 2 + 4 * np.spacing(farthest(scale, offset))))


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Name what a LAS file cannot hold: attributes that are no numbers, indices, waveforms."""
    lost = [
        f"attribute '{name}' ({values.dtype})"
        for name, values in cloud.attributes.items()
        if Kind.of(values).stored is None
    ]
    layout = _layout_of(cloud)
    if layout is not None:
        lost += lost_indices(layout)
        if layout.has_internal_waveforms:
            lost.append("waveforms (what each point says of its own is kept)")
        elif layout.has_external_waveforms:
            lost.append("waveforms (copy the .wdp file beside the new one to keep them)")
    return tuple(lost)


FORMAT = Format(
    "LAS", (".las", ".laz"), read, write, precision, losses, Pieces(open=open_, create=create)
)
