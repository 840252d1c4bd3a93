"""Room `cloud`: points as lines of decimal numbers (.xyz, .asc, .txt, .csv, .pts)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import (
    fault_of_row,
    find_xyz,
    flat_columns,
    is_number,
    repeated,
    write_decimal_rows,
)
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

_MARK = re.compile(r"(?:#+|//)\s*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_COUNT = re.compile(r"[0-9]{1,18}")
_SNIFFED = 1 << 16
# What the columns behind x, y and z of a .pts file are, by how many there are.
_PTS_COLOURS = ("red", "green", "blue")
_PTS_NAMES = {1: ("intensity",), 3: _PTS_COLOURS, 4: ("intensity", *_PTS_COLOURS)}


@dataclass(frozen=True)
class TextLayout:
    """
    How a text file was laid out; kept as `metadata["text"]`.

    Parameters
    ----------
    suffix : str
        A file of another suffix gets the layout usual for it instead.
    delimiter : str
        What stands between two numbers.
    names : tuple of str
        All columns in order, also when the file does not name them.
    header : str or None
        None if the file has no line of names, else what stands before them ("", "# ", "//").
    comments : tuple of str
        The comment lines above the first row. Those further down are not kept.
    counted : bool
        Whether the first line is the number of points (.pts).
    """

    suffix: str
    delimiter: str
    names: tuple[str, ...]
    header: str | None
    comments: tuple[str, ...] = ()
    counted: bool = False


@dataclass(frozen=True)
class _Top:
    """What stands above the first row: how many lines, and what they say."""

    lines: int
    first_row: str | None
    comments: tuple[str, ...]
    header: str | None
    count: int | None


def read(path: Path) -> PointCloud:
    """
    Read rows of numbers separated by blanks, commas or semicolons.

    A line of names above the rows (bare, or behind # or //) must name x, y and z; without one the
    first three columns are the position, and further ones are called `column_3` and so on.

    A .pts file may begin with its number of points, and without names its further columns are
    `intensity`; `red`, `green` and `blue` (uint8); or all of these.
    """
    top = _read_top(path)
    if top.first_row is None:
        return _without_rows(path, top)
    delimiter = _delimiter(top.first_row)
    fields = _split(top.first_row, delimiter)
    prefix, names, comments = _names(top, len(fields))
    xyz = (0, 1, 2) if prefix is None else find_xyz(names)
    if xyz is None:
        raise FileFormatError(f"its header names no x, y and z: {', '.join(names)[:80]}")
    if len(fields) < 3:
        raise FileFormatError(f"line {top.lines + 1} has {len(fields)} values; x, y, z are needed")
    table = _load(path, top, delimiter, fields, xyz)
    _check_count(top, len(table[0]))
    if prefix is None:
        names, table = _unnamed(path.suffix.lower(), table)
    written = "\t" if delimiter is None and "\t" in top.first_row else delimiter or " "
    layout = TextLayout(
        path.suffix.lower(), written, tuple(names), prefix, comments, top.count is not None
    )
    positions = np.stack([table[i] for i in xyz], axis=1)
    attributes = {name: table[i] for i, name in enumerate(names) if i not in xyz}
    return PointCloud(positions, attributes, {"text": layout})


def _read_top(path: Path) -> _Top:
    with path.open("rb") as raw:
        start = raw.read(_SNIFFED)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileFormatError("is UTF-16 text; save it as UTF-8")
    if b"\0" in start:
        raise FileFormatError("is not text but binary")
    comments: list[str] = []
    header: str | None = None
    count: int | None = None
    may_count = path.suffix.lower() == ".pts"
    with _open(path) as file:
        for number, raw_line in enumerate(file):
            line = _decode(raw_line).strip()
            if not line:
                continue
            if _MARK.match(line):
                comments.append(line)
            elif may_count and count is None and header is None and _COUNT.fullmatch(line):
                count = int(line)
            elif header is None and _is_header(line):
                header = line
            else:
                return _Top(number, line, tuple(comments), header, count)
    return _Top(0, None, tuple(comments), header, count)


def _check_count(top: _Top, rows: int) -> None:
    if top.count is not None and top.count != rows:
        raise FileFormatError(
            f"its first line says {top.count} points, but {rows} rows follow; "
            "the file is cut off or its count is wrong"
        )


def _unnamed(
    suffix: str, columns: list[npt.NDArray[Any]]
) -> tuple[list[str], list[npt.NDArray[Any]]]:
    """Return the names that `columns` (N,) have in a file that names none, and the columns."""
    names = ["x", "y", "z", *(f"column_{i}" for i in range(3, len(columns)))]
    usual = _PTS_NAMES.get(len(columns) - 3) if suffix == ".pts" else None
    if usual is None:
        return names, columns
    colours = columns[-3:] if usual[-3:] == _PTS_COLOURS else []
    for colour in colours:
        whole = colour.dtype.kind in "iu"
        if not whole or colour.min(initial=0) < 0 or colour.max(initial=0) > 255:
            return names, columns
    rest = columns[: len(columns) - len(colours)]
    return ["x", "y", "z", *usual], [*rest, *(colour.astype(np.uint8) for colour in colours)]


def _open(path: Path) -> TextIO:
    """Open a file behind its byte order mark, if it has one."""
    # Latin-1 takes any byte, so that an odd comment further down cannot stop the reading.
    file = path.open(encoding="latin-1")
    if file.read(3) != "\xef\xbb\xbf":
        file.seek(0)
    return file


def _decode(line: str) -> str:
    if line.isascii():
        return line
    try:
        return line.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return line


def _is_header(line: str) -> bool:
    fields = _split(line, _delimiter(line))
    return find_xyz(fields) is not None or not any(map(is_number, fields))


def _delimiter(line: str) -> str | None:
    """Return what separates the fields of `line`; None for blanks."""
    return next((sign for sign in ";," if sign in line), None)


def _split(line: str, delimiter: str | None) -> list[str]:
    return [field.strip().strip("\"'") for field in line.split("#", 1)[0].split(delimiter)]


def _names(top: _Top, width: int) -> tuple[str | None, list[str], tuple[str, ...]]:
    """Return what stands before the names (None if there are none), the names, the comments."""
    if top.header is not None:
        names = _split(top.header, _delimiter(top.header))
        if len(names) != width:
            raise FileFormatError(
                f"its header names {len(names)} columns, line {top.lines + 1} has {width} values"
            )
        twice = repeated(names)
        if twice is not None:
            raise FileFormatError(f"its header names column '{twice}' twice")
        return "", names, top.comments
    if top.comments:
        last = top.comments[-1]
        mark = _MARK.match(last)
        bare = last[mark.end() :] if mark else last
        names = _split(bare, _delimiter(bare))
        if len(names) == width and find_xyz(names) and repeated(names) is None:
            return last[: len(last) - len(bare)], names, top.comments[:-1]
    return None, ["x", "y", "z", *(f"column_{i}" for i in range(3, width))], top.comments


def _without_rows(path: Path, top: _Top) -> PointCloud:
    """Return the empty cloud of a file that has only a header."""
    _check_count(top, 0)
    line = top.header or (top.comments[-1] if top.comments else "")
    width = len(_split(_MARK.sub("", line, count=1), _delimiter(line)))
    prefix, names, comments = _names(top, width)
    xyz = find_xyz(names)
    if (prefix is None and top.count is None) or xyz is None:
        raise FileFormatError("holds no points")
    written = _delimiter(line) or " "
    layout = TextLayout(
        path.suffix.lower(), written, tuple(names), prefix, comments, top.count is not None
    )
    attributes = {name: np.empty(0) for i, name in enumerate(names) if i not in xyz}
    return PointCloud(np.empty((0, 3)), attributes, {"text": layout})


def _load(
    path: Path, top: _Top, delimiter: str | None, fields: list[str], xyz: tuple[int, int, int]
) -> list[npt.NDArray[Any]]:
    """Return the columns, float64 (N,) each, or int64 where an attribute is whole throughout."""

    def load(kinds: list[str], columns: list[int] | None = None) -> npt.NDArray[Any]:
        with _open(path) as file:
            for _ in range(top.lines):
                file.readline()
            row = np.dtype([(f"f{i}", kind) for i, kind in enumerate(kinds)])
            return np.loadtxt(
                file, dtype=row, comments="#", delimiter=delimiter, usecols=columns, ndmin=1
            )

    whole = [bool(_INTEGER.fullmatch(f)) and i not in xyz for i, f in enumerate(fields)]
    floats = ["f8"] * len(fields)
    try:
        table = load(["i8" if w else "f8" for w in whole])
        return [np.ascontiguousarray(table[f"f{i}"]) for i in range(len(fields))]
    except ValueError:
        pass  # a number further down is not whole, or a row is broken
    try:
        table = load(floats)
    except ValueError as error:
        raise FileFormatError(_broken_row(path, top, delimiter, len(fields), error)) from error
    columns = [np.ascontiguousarray(table[f"f{i}"]) for i in range(len(fields))]
    for i, maybe in enumerate(whole):
        if maybe:
            try:
                columns[i] = np.ascontiguousarray(load(["i8"], [i])["f0"])
            except ValueError:
                continue
    return columns


def _broken_row(path: Path, top: _Top, delimiter: str | None, width: int, error: ValueError) -> str:
    """Name the line that could not be read."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            bare = line.split("#", 1)[0].strip()
            if number <= top.lines or not bare:
                continue
            fault = fault_of_row([f.strip() for f in bare.split(delimiter)], width)
            if fault and top.count is not None and _COUNT.fullmatch(bare):
                return f"line {number} begins another scan; split it into one file per scan"
            if fault:
                return f"line {number} {fault}"
    return str(error).split(";")[0]


def write(cloud: PointCloud, path: Path) -> None:
    """
    Write one line per point, each number with the fewest digits that read back the same.

    A cloud from a file of the same suffix keeps that file's delimiter, header style, comments and
    column order. Otherwise numbers are separated by blanks (.csv: commas); names are written where
    they would otherwise be lost. A .pts file begins with its number of points, unless the one the
    cloud came from did not.
    """
    suffix = path.suffix.lower()
    found = cloud.metadata.get("text")
    if not isinstance(found, TextLayout) or found.suffix != suffix:
        found = _usual_layout(suffix, cloud)
    blank = found.delimiter.isspace()
    spare = flat_columns(cloud.attributes, forbidden=r"[\s,;#\"']+" if blank else r"[,;#\"']+")
    xyz = find_xyz(found.names) or (0, 1, 2)
    columns: dict[str, npt.NDArray[Any]] = {}
    for i, name in enumerate(found.names):
        if i in xyz:
            columns[name] = cloud.positions[:, xyz.index(i)]
        elif name in spare:
            columns[name] = spare.pop(name)
    if columns.keys() & spare.keys():
        raise FileFormatError(f"attribute '{min(columns.keys() & spare.keys())}' must be renamed")
    columns.update(spare)
    header = found.header
    default, _ = _unnamed(suffix, list(columns.values()))
    if header is None and (list(columns) != default or len(cloud) == 0):
        header = "" if suffix == ".csv" else "# "
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if found.counted:
            file.write(f"{len(cloud)}\n")
        file.writelines(f"{comment}\n" for comment in found.comments)
        if header is not None:
            file.write(header + found.delimiter.join(columns) + "\n")
        write_decimal_rows(file, list(columns.values()), found.delimiter)


def _usual_layout(suffix: str, cloud: PointCloud) -> TextLayout:
    """Return the layout of a file that did not come from one of the same suffix."""
    if suffix == ".csv":
        return TextLayout(suffix, ",", ("x", "y", "z"), "")
    names: tuple[str, ...] = ()
    if suffix == ".pts":
        names = next((n for n in _PTS_NAMES.values() if set(n) == set(cloud.attributes)), ())
    return TextLayout(suffix, " ", ("x", "y", "z", *names), None, counted=suffix == ".pts")


FORMAT = Format("text", (".xyz", ".asc", ".txt", ".csv", ".pts"), read, write)
