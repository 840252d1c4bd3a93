"""Room `cloud`: the compressed points of LAZ files, checked before they are decompressed."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from pointmend.cloud.las_header import LASZIP, Header, Record
from pointmend.cloud.las_points import Array, record_type
from pointmend.errors import FileFormatError

_START = struct.Struct("<HH8xI16xH")  # compressor, coder, chunk size, items
_ITEM = struct.Struct("<3H")  # type, size, version
_BYTES, _NEW_BYTES = 0, 14  # the item types of extra bytes
_ITEMS = (
    (6,), (6, 7), (6, 8), (6, 7, 8), (6, 7, 9), (6, 7, 8, 9),
    (10,), (10, 11), (10, 12), (10, 13), (10, 12, 13),
)  # fmt: skip
_ITEM_SIZES = {6: 20, 7: 8, 8: 6, 9: 29, 10: 30, 11: 6, 12: 8, 13: 29}
_ITEM_LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}
_ONE_CHUNK, _CHUNKS, _LAYERS = 1, 2, 3  # the compressors
_ANY_SIZE = 0xFFFFFFFF
_DAMAGED = "LAZ points are damaged"

# 50,000 equal points, the usual chunk, take more than 300 bytes: what claims to be packed several
# times as densely is a header that lies.
_MOST_POINTS_PER_BYTE = 1024
# The decompressor spends about 10 kB on each; no file can describe more numbers.
_MOST_EXTRA_BYTES = 8192


@contextmanager
def explained(trouble: str) -> Iterator[None]:
    """Turn whatever the library stumbles over into one line that starts with `trouble`."""
    try:
        yield
    except (FileFormatError, OSError):
        raise
    except BaseException as error:
        # A panic of its Rust code is no Exception, but a damaged file is no reason to stop.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).split("\n")[0][:120]
        raise FileFormatError(f"{trouble}: {reason}") from error


def check(file: BinaryIO, header: Header, laszip: Record | None) -> None:
    """
    Refuse a LAZ file whose sizes contradict each other.

    The decompressor believes what a file says of its chunks and their layers, and would allocate
    what it asks for; so all of that is compared with the size of the file first.
    """
    if laszip is None:
        raise FileFormatError("LAZ file has no record that tells how it is compressed")
    if len(laszip.data) < _START.size:
        raise FileFormatError("LAZ file's record of its compression is cut off")
    compressor, coder, chunk_size, count = _START.unpack_from(laszip.data)
    items = [
        _ITEM.unpack_from(laszip.data, place)
        for place in range(_START.size, len(laszip.data) - _ITEM.size + 1, _ITEM.size)
    ][:count]
    if coder != 0 or compressor not in (_ONE_CHUNK, _CHUNKS, _LAYERS) or chunk_size == 0:
        raise FileFormatError(f"LAZ compressor {compressor} with coder {coder} is unknown")
    if len(items) < count or not _items_fit(items, header):
        raise FileFormatError(
            "LAZ file's record of its compression does not fit point format "
            f"{header.point_format} with {header.number('record_length')} bytes per point"
        )
    if (items[0][2] >= 3) != (compressor == _LAYERS):
        raise FileFormatError(f"LAZ compressor {compressor} has items of version {items[0][2]}")
    size = os.fstat(file.fileno()).st_size
    if header.count > _MOST_POINTS_PER_BYTE * (size - header.number("points_at")):
        raise FileFormatError(f"LAZ header declares {header.count} points in {size} bytes")
    if compressor != _ONE_CHUNK:
        chunks = _chunks(file, header, laszip, chunk_size)
        if compressor == _LAYERS:
            _check_layers(file, header, chunks, items)


def _items_fit(items: list[tuple[Any, ...]], header: Header) -> bool:
    """Tell whether `items` (type, size, version) are those of the header's point format."""
    format_ = header.point_format
    extra = header.number("record_length") - record_type(format_, ()).itemsize
    wanted = [(kind, _ITEM_SIZES[kind]) for kind in _ITEMS[format_]]
    if extra:
        wanted.append((_BYTES if format_ < 6 else _NEW_BYTES, extra))
    _check_extra(extra)
    return [item[:2] for item in items] == wanted


def _check_extra(extra: int) -> None:
    if extra > _MOST_EXTRA_BYTES:
        raise FileFormatError(
            f"LAZ points with {extra} extra bytes take too much memory; "
            f"use .las, or no more than {_MOST_EXTRA_BYTES} of them"
        )


def _chunks(
    file: BinaryIO, header: Header, laszip: Record, chunk_size: int
) -> list[tuple[int, int]]:
    """Return points and bytes of every chunk, if they add up to what header and file have."""
    import lazrs  # type: ignore[import-untyped]

    size, start = os.fstat(file.fileno()).st_size, header.number("points_at")
    table_at = _table_place(file, start, size)
    file.seek(table_at)
    version, number = struct.unpack("<II", file.read(8))
    room = table_at - start - 8
    # Every chunk starts with a whole point, but for one that may have none.
    if version != 0 or (number - 1) * header.number("record_length") > room:
        raise FileFormatError(f"LAZ file declares {number} chunks in {room} bytes")
    with explained(_DAMAGED):
        file.seek(start)
        table: list[tuple[int, int]] = lazrs.read_chunk_table(file, lazrs.LazVlr(laszip.data))
    if sum(length for _, length in table) > room:
        raise FileFormatError("LAZ chunks are longer than the file; it is damaged")
    # Some writers end with a chunk of no points, which may still have a few bytes.
    record = header.number("record_length")
    while table and table[-1][1] < record:
        table.pop()
    if chunk_size == _ANY_SIZE:
        held = sum(points for points, _ in table)
        right = held == header.count and all(points for points, _ in table)
    else:
        held = len(table) * chunk_size
        right = held - chunk_size < header.count <= held
    if not right:
        raise FileFormatError(
            f"LAZ header declares {header.count} points, but its {len(table)} chunks hold "
            f"{'' if chunk_size == _ANY_SIZE else 'up to '}{held}; "
            "the file is damaged or its header is wrong"
        )
    return table


def _table_place(file: BinaryIO, start: int, size: int) -> int:
    """Return where the chunk table stands: a file written in one go says so in its last bytes."""
    for place in (start, size - 8):
        if start <= place <= size - 8:
            file.seek(place)
            found = int.from_bytes(file.read(8), "little", signed=True)
            if found > start:
                break
    else:
        raise FileFormatError("LAZ file has no table of its chunks; it is cut off")
    if not start + 8 <= found <= size - 8:
        raise FileFormatError(
            f"LAZ file is cut off: its chunk table should be at byte {found} of {size}"
        )
    return found


def _check_layers(
    file: BinaryIO, header: Header, chunks: list[tuple[int, int]], items: list[tuple[Any, ...]]
) -> None:
    layers = sum(size if kind == _NEW_BYTES else _ITEM_LAYERS[kind] for kind, size, _ in items)
    record = header.number("record_length")
    place = header.number("points_at") + 8
    for number, (_, length) in enumerate(chunks, start=1):
        file.seek(place + record + 4)
        sizes = np.frombuffer(file.read(4 * layers), "<u4")
        if record + 4 * (layers + 1) + int(sizes.sum()) > length:
            raise FileFormatError(f"LAZ chunk {number} of {len(chunks)} is damaged")
        place += length


def decompressed(
    file: BinaryIO, header: Header, laszip: Record, dtype: np.dtype[Any], rows: int
) -> Iterator[Array]:
    """Yield all records of a file that passed `check`, up to `rows` of them at a time."""
    import lazrs

    file.seek(header.number("points_at"))
    with explained(_DAMAGED):
        decompressor = lazrs.LasZipDecompressor(file, laszip.data)
    left = header.count
    while left:
        records = np.empty(min(rows, left), dtype)
        with explained(_DAMAGED):
            decompressor.decompress_many(records.view(np.uint8))
        yield records
        left -= len(records)


class Compressor:
    """
    Compresses records into an open file, from where it stands.

    Parameters
    ----------
    file : binary file
        Its header and records are written before `append`.
    point_format, extra : int
        What the records are, and how many extra bytes each has.
    """

    def __init__(self, file: BinaryIO, point_format: int, extra: int) -> None:
        import lazrs

        _check_extra(extra)
        self._file = file
        self._vlr = lazrs.LazVlr.new_for_compression(point_format, extra)
        self._compressor: Any = None

    @property
    def record(self) -> Record:
        """The record that tells how the file is compressed."""
        return Record.new(LASZIP, "by lazrs", self._vlr.record_data())

    def append(self, records: Array) -> None:
        """Compress `records` (N,)."""
        with explained("LAZ points cannot be written"):
            self._started().compress_many(records.view(np.uint8))

    def finish(self) -> None:
        """Write the table of chunks; the file then stands behind it."""
        with explained("LAZ points cannot be written"):
            self._started().done()

    def _started(self) -> Any:
        import lazrs

        if self._compressor is None:
            self._compressor = lazrs.LasZipCompressor(self._file, self._vlr)
        return self._compressor
