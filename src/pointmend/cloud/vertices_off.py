"""Room `cloud`: the vertices of OFF files; the faces are carried through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import write_decimal_rows
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PerPoint, PointCloud
from pointmend.cloud.vertices_lines import (
    COLOURS,
    Array,
    NumberLines,
    attribute_columns,
    lost_attributes,
    plain_numbers,
    span_of_content,
)
from pointmend.errors import FileFormatError

_KEYWORD = re.compile(rb"(ST)?(C)?(N)?(4|n|4n)?OFF(?![A-Za-z])")
_CONTENT = re.compile(rb"^[ \t]*([^#\s][^#\r\n]*)", re.MULTILINE)
_SHORTEST_VERTEX, _SHORTEST_FACE = len("0 0 0\n"), len("0\n")
# In this order normals, colours and texture coordinates follow x, y and z.
_GROUPS = {"N": ("nx", "ny", "nz"), "C": COLOURS, "ST": ("s", "t")}


@dataclass(frozen=True, eq=False)
class OffLayout(PerPoint):
    """
    The OFF file that the points are the vertices of; kept as `metadata["off"]`.

    Parameters
    ----------
    lines : NumberLines
        The file, its vertices being the rows that may change.
    keyword : (int, int)
        Where the word is that begins the file: OFF, COFF, NOFF, ...
    groups : tuple of tuples of str
        The attributes the vertices have, as far as they are what the keyword says.
    """

    lines: NumberLines
    keyword: tuple[int, int]
    groups: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, index: npt.NDArray[np.intp]) -> OffLayout:
        """Return the layout for the points `index` (M,); faces name vertices by number and go."""
        if np.array_equal(index, np.arange(len(self))):
            return self
        word = self.lines.body[slice(*self.keyword)]
        texts = list(self.lines.texts())
        rows = b"".join(b"%b\n" % texts[i] for i in index)
        lines, keyword = _find_vertices(b"%b\n%d 0 0\n" % (word, len(index)) + rows)
        return OffLayout(lines, keyword, self.groups)


def read(path: Path) -> PointCloud:
    """
    Read the vertices in file order; faces and comments wait in the metadata.

    Attributes are what the first word of the file announces: NOFF `nx`, `ny`, `nz`; COFF `red`,
    `green`, `blue` and perhaps `alpha`; STOFF `s`, `t`; or several of these. Other numbers of a
    vertex stay in the file without becoming attributes.
    """
    lines, keyword = _find_vertices(path.read_bytes())
    table = lines.table()
    groups = _groups(lines.body[slice(*keyword)], table.shape[1])
    names = [name for group in groups for name in group]
    attributes = attribute_columns(lines, table, names)
    return PointCloud(table[:, :3], attributes, {"off": OffLayout(lines, keyword, groups)})


def _find_vertices(body: bytes) -> tuple[NumberLines, tuple[int, int]]:
    """Return where the vertices are in an OFF file, and where its first word is."""
    rows = _CONTENT.finditer(body)
    first = next(rows, None)
    keyword = _KEYWORD.match(body, first.start(1)) if first else None
    if first is None or keyword is None:
        raise FileFormatError("not an OFF file: it does not begin with OFF, COFF or NOFF")
    if keyword[4]:
        raise FileFormatError("OFF file is not three-dimensional")
    words = body[keyword.end() : first.end(1)].split()
    if words[:1] == [b"BINARY"]:
        raise FileFormatError("OFF file is binary; save it as text")
    if not words:
        second = next(rows, None)
        words = second[1].split() if second else []
    if len(words) not in (2, 3) or not all(word.isdigit() and len(word) <= 18 for word in words):
        raise FileFormatError("OFF file does not begin with the numbers of vertices and faces")
    vertices, faces = int(words[0]), int(words[1])
    declared = f"OFF file declares {vertices} vertices and {faces} faces"
    # The last line feed may be missing.
    if vertices * _SHORTEST_VERTEX + faces * _SHORTEST_FACE - 1 > len(body):
        raise FileFormatError(f"{declared}, but has {len(body)} bytes; it is cut off")
    places = (place for row in islice(rows, vertices) for place in span_of_content(row, 1))
    spans = np.fromiter(places, dtype=np.int64).reshape(-1, 2)
    found, last = 0, b"0"
    for row in rows:
        found, last = found + 1, row[1]
    if len(spans) != vertices or found != faces:
        raise FileFormatError(f"{declared}, but {len(spans) + found} rows follow")
    # Only the last face is looked at: that is the one a cut-off file has damaged.
    corners = last.split()
    if not corners[0].isdigit() or len(corners[0]) > 9 or len(corners) <= int(corners[0]):
        raise FileFormatError("OFF file's last face is incomplete; the file is cut off")
    return NumberLines(body, spans), keyword.span()


def _groups(keyword: bytes, width: int) -> tuple[tuple[str, ...], ...]:
    """Return what `keyword` says of rows with `width` numbers; nothing if they differ from it."""
    letters = keyword.decode().removesuffix("OFF")
    groups = [names for letter, names in _GROUPS.items() if letter in letters]
    if COLOURS in groups and width == 4 + sum(map(len, groups)):
        groups[groups.index(COLOURS)] = (*COLOURS, "alpha")
    return tuple(groups) if width == 3 + sum(map(len, groups)) else ()


def _layout_of(cloud: PointCloud) -> OffLayout | None:
    layout = cloud.metadata.get("off")
    return layout if isinstance(layout, OffLayout) else None


def _columns(cloud: PointCloud) -> dict[str, Array]:
    """Return the attributes that go behind x, y and z, (N,) each: what is left of its file's."""
    layout = _layout_of(cloud)
    columns: dict[str, Array] = {}
    for group in () if layout is None else layout.groups:
        found = {name: plain_numbers(cloud, name) for name in group}
        there = {name: values for name, values in found.items() if values is not None}
        if len(there) == len(group) or tuple(there) == COLOURS:
            columns.update(there)
    return columns


def losses(cloud: PointCloud) -> tuple[str, ...]:
    """Return what OFF cannot hold: all attributes but those its vertices had."""
    return lost_attributes(cloud, _columns(cloud))


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write vertices, in the file they came from if that was an OFF.

    Its faces and comments stay, and so does the text of vertices that did not change. A cloud from
    elsewhere becomes vertices without faces.
    """
    layout = _layout_of(cloud)
    columns = _columns(cloud)
    values = [*cloud.positions.T, *columns.values()]
    if layout is None:
        with path.open("w", encoding="ascii", newline="\n") as file:
            file.write(f"OFF\n{len(cloud)} 0 0\n")
            write_decimal_rows(file, values, " ")
        return
    body = layout.lines.with_columns(values, keep_rest=not layout.groups)
    if layout.groups:
        start, end = layout.keyword
        letters = "".join(a for a in reversed(_GROUPS) if _GROUPS[a][0] in columns)
        body = body[:start] + f"{letters}OFF".encode() + body[end:]
    path.write_bytes(body)


FORMAT = Format("OFF", (".off",), read, write, losses=losses)
