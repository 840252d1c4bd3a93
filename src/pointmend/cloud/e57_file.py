"""Room `cloud`: the outside of an E57 file, checked before any library is let near it."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from pointmend.cloud.e57_tree import Node, parse_xml
from pointmend.errors import FileFormatError

_PAGE, _PAYLOAD = 1024, 1020  # each page ends with a checksum, which libE57 verifies
_HEADER = struct.Struct("<8sIIQQQQ")
_POINTS_SECTION = struct.Struct("<B7xQQQ")
_INDEX_PACKET, _DATA_PACKET, _EMPTY_PACKET = 0, 1, 2


class CheckedE57:
    """
    An open E57 file whose header is good and whose XML is read.

    Places in the file are counted in two ways: physical as they are, logical without checksums.

    Parameters
    ----------
    file : BinaryIO
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        header = file.read(_HEADER.size)
        if header[:8] != b"ASTM-E57":
            raise FileFormatError("not an E57 file: it does not begin with ASTM-E57")
        if len(header) < _HEADER.size:
            raise FileFormatError("E57 file ends in its header")
        _, major, minor, length, xml_start, xml_length, page = _HEADER.unpack(header)
        if major != 1:
            raise FileFormatError(f"E57 version is {major}.{minor}; only 1.x is known")
        if page != _PAGE:
            raise FileFormatError(f"E57 header declares pages of {page} bytes instead of {_PAGE}")
        if length != self.size or length % _PAGE:
            raise FileFormatError(
                f"E57 header declares {length} bytes, the file has {self.size}; "
                "it is cut off or its header is wrong"
            )
        start = self._logical(xml_start, "its XML")
        self.root, self.extensions = parse_xml(self._bytes(start, xml_length, "its XML"))

    @property
    def logical_size(self) -> int:
        """Bytes of the file without checksums."""
        return self.size // _PAGE * _PAYLOAD

    def _logical(self, physical: int, what: str) -> int:
        page, rest = divmod(physical, _PAGE)
        if not _HEADER.size <= physical < self.size or rest >= _PAYLOAD:
            raise FileFormatError(f"E57 places {what} at byte {physical}, where nothing can be")
        return page * _PAYLOAD + rest

    def _bytes(self, start: int, count: int, what: str) -> bytes:
        if start + count > self.logical_size:
            raise FileFormatError(f"E57 declares {count} bytes of {what}, more than the file has")
        first, rest = divmod(start, _PAYLOAD)
        pages = -(-(rest + count) // _PAYLOAD)
        self._file.seek(first * _PAGE)
        content = self._file.read(pages * _PAGE)
        payload = np.frombuffer(content, dtype=np.uint8).reshape(-1, _PAGE)[:, :_PAYLOAD]
        return payload.tobytes()[rest : rest + count]

    def check_points(self, node: Node, bits: Sequence[int], scan: str) -> int:
        """
        Walk over the packets of a scan's points; return how many points there are.

        Parameters
        ----------
        node : Node
            The CompressedVector.
        bits : sequence of int
            What one point takes in each of the byte streams, at least.
        scan : str
            Its name in an error.

        Raises
        ------
        FileFormatError
            If the packets are not well formed or hold fewer points than declared.
        """
        count = node.integer("recordCount", -1)
        if count < 0:
            raise FileFormatError(f"E57 {scan} does not say how many points it has")
        if count == 0:
            return 0
        needed = [-(-width * count // 8) for width in bits]
        what = f"the points of {scan}"
        start = self._logical(node.integer("fileOffset", 0), what)
        section = self._bytes(start, _POINTS_SECTION.size, what)
        kind, length, first, _ = _POINTS_SECTION.unpack(section)
        end = start + length
        if kind != 1 or end > self.logical_size or sum(needed) > length:
            raise FileFormatError(
                f"E57 {scan} declares {count} points, at least {sum(needed)} bytes; "
                f"the file has no such section of points"
            )
        missing = needed
        place = self._logical(first, what)
        while max(missing) > 0:
            if not start < place < end:
                raise FileFormatError(f"E57 {scan} ends before its {count} points")
            length, sizes = self._packet(place, end, len(bits), scan)
            missing = [left - size for left, size in zip(missing, sizes)]
            place += length
        return count

    def _packet(self, place: int, end: int, streams: int, scan: str) -> tuple[int, list[int]]:
        """Return how long the packet at `place` is, and how many bytes of each stream it holds."""
        kind, _, length = struct.unpack("<BBH", self._bytes(place, 4, f"packets of {scan}"))
        length += 1
        damaged = FileFormatError(f"E57 {scan} has a damaged packet of points at byte {place}")
        if length % 4 or place + length > end:
            raise damaged
        if kind in (_INDEX_PACKET, _EMPTY_PACKET):
            return length, [0] * streams
        if kind != _DATA_PACKET or length < 6 + 2 * streams:
            raise damaged
        head = self._bytes(place + 4, 2 + 2 * streams, f"packets of {scan}")
        count, *sizes = struct.unpack(f"<H{streams}H", head)
        if count != streams or 6 + 2 * streams + sum(sizes) > length:
            raise damaged
        return length, sizes
