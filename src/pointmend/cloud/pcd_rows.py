"""Room `cloud`: the points of a PCD file in its three encodings, as columns and back."""

from __future__ import annotations

import io
import struct
import warnings
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import fault_of_row, write_decimal_rows
from pointmend.cloud.pcd_header import Field, Header
from pointmend.cloud.precision import decimals_fit_float32
from pointmend.errors import FileFormatError

Array = npt.NDArray[Any]
_ROWS_PER_CHUNK = 1 << 18
_SIZES = struct.Struct("<II")
_MAX_PACKED = 2**32 - 1
# LZF turns three bytes into at most 264; a file that claims more is lying about its size.
_MAX_PACKING = 88


def check_count(header: Header, size: int) -> None:
    """Refuse a header that declares more points than fit into the `size` bytes that follow."""
    if header.encoding == "ascii":
        # One digit and one separator per number; the last separator may be missing.
        needed = header.points * header.row_words * 2 - 1
    elif header.encoding == "binary":
        needed = header.points * header.row_size
    else:
        needed = header.points * _without_padding(header).row_size // _MAX_PACKING
    if needed > size:
        raise FileFormatError(
            f"PCD header declares {header.points} points: at least {needed} bytes, but {size} "
            "follow; the file is cut off or its header is wrong"
        )


def read_columns(header: Header, body: bytes) -> tuple[Header, list[Array]]:
    """
    Read the points that follow a header.

    Returns
    -------
    header : Header
        With the fields that are really there.
    columns : list of arrays
        (N,) or (N, c) per field, in native byte order and in the declared types. Only floats of
        text that carry more than float32 holds are float64.
    """
    if header.encoding == "ascii":
        return header, _ascii_columns(header, body)
    if header.encoding == "binary":
        return header, _binary_columns(header, body)
    body, header = _unpacked(header, body)
    return header, _packed_columns(header, body)


def write_columns(file: BinaryIO, header: Header, columns: list[Array]) -> None:
    """Write the points after their header; the inverse of `read_columns`."""
    if header.encoding == "ascii":
        _write_ascii(file, header, columns)
    elif header.encoding == "binary":
        _write_binary(file, header, columns)
    else:
        _write_packed(file, header, columns)


def _check_rest(rest: bytes) -> None:
    # Some writers fill the last page of the file with zeros, or end with an empty line.
    if rest.strip(b"\0\r\n\t "):
        raise FileFormatError(
            f"PCD file has {len(rest)} bytes after the points its header declares; "
            "the counts in the header are wrong"
        )


def _binary_columns(header: Header, body: bytes) -> list[Array]:
    _check_rest(body[header.points * header.row_size :])
    rows = np.frombuffer(body, _row_type(header.fields), header.points)
    return [_native(rows[f"f{i}"]) for i in range(len(header.fields))]


def _row_type(fields: tuple[Field, ...]) -> np.dtype[Any]:
    # Numbered, because padding has the same name everywhere.
    return np.dtype(
        [(f"f{i}", "<" + f.code, () if f.count == 1 else (f.count,)) for i, f in enumerate(fields)]
    )


def _native(values: Array) -> Array:
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))


def _unpacked(header: Header, body: bytes) -> tuple[bytes, Header]:
    """Return the bytes of a compressed body, and the header of the fields that are in it."""
    import lzf  # type: ignore[import-not-found]

    if header.points == 0:
        return b"", header
    if len(body) < _SIZES.size:
        raise FileFormatError("PCD file ends before its compressed data")
    packed, size = _SIZES.unpack_from(body)
    if packed > len(body) - _SIZES.size:
        raise FileFormatError(
            f"PCD file declares {packed} compressed bytes, but {len(body) - _SIZES.size} follow; "
            "it is cut off"
        )
    stored = header
    if size != header.points * header.row_size:
        # Some writers name the padding without storing it.
        stored = _without_padding(header)
    if size != stored.points * stored.row_size or size > packed * _MAX_PACKING:
        raise FileFormatError(
            f"PCD file declares {size} bytes packed into {packed}, "
            f"{header.points} points need {header.points * header.row_size}"
        )
    _check_rest(body[_SIZES.size + packed :])
    try:
        found = lzf.decompress(body[_SIZES.size : _SIZES.size + packed], size)
    except ValueError:
        found = None
    if found is None or len(found) != size:
        raise FileFormatError("PCD file's compressed data is damaged")
    return found, stored


def _without_padding(header: Header) -> Header:
    return replace(header, fields=tuple(f for f in header.fields if not f.is_padding))


def _packed_columns(header: Header, body: bytes) -> list[Array]:
    """Return the columns of a body that has them one after the other."""
    columns: list[Array] = []
    start = 0
    for f in header.fields:
        values = np.frombuffer(body, "<" + f.code, header.points * f.count, start)
        columns.append(_native(values if f.count == 1 else values.reshape(-1, f.count)))
        start += values.nbytes
    return columns


def _ascii_columns(header: Header, body: bytes) -> list[Array]:
    lines = [line for line in body.splitlines() if line.strip()]
    if len(lines) != header.points:
        raise FileFormatError(
            f"PCD header declares {header.points} points, {len(lines)} rows follow"
        )
    if not lines:
        return [np.empty((0, f.count) if f.count > 1 else 0, f.code) for f in header.fields]
    # float64 holds all numbers of up to four bytes, so that those can be checked afterwards.
    codes = [f.code if f.size == 8 else "f8" for f in header.fields for _ in range(f.count)]
    table = _ascii_table(lines, codes)
    columns: list[Array] = []
    at = 0
    for f in header.fields:
        parts = [table[f"f{i}"] for i in range(at, at + f.count)]
        values = np.ascontiguousarray(parts[0]) if f.count == 1 else np.stack(parts, axis=1)
        bits = f.is_packed_colour and _are_bits(lines, at, values)
        columns.append(_typed(values, replace(f, kind="U") if bits else f))
        at += f.count
    return columns


def _are_bits(lines: list[bytes], at: int, values: Array) -> bool:
    """
    Tell whether word `at` of every line, read as `values` (N,), is the bits of a colour.

    The floats that opaque colours make are NaNs, so most writers print whole numbers instead.
    """
    words = (line.decode("latin-1").split()[at] for line in lines)
    return bool(np.all(values < 2**32)) and all(map(str.isdigit, words))


def _ascii_table(lines: list[bytes], codes: list[str]) -> Array:
    """Return the numbers as records (N,) with fields f0, f1, ... of the types `codes`."""
    row = np.dtype([(f"f{i}", code) for i, code in enumerate(codes)])
    rows = io.BytesIO(b"\n".join(lines))
    reason = "has rows that are not understood"
    try:
        with warnings.catch_warnings():
            # Numpy warns of empty rows, and older ones of decimals they cut off from an integer.
            warnings.simplefilter("error")
            table = np.loadtxt(rows, dtype=row, comments=None, ndmin=1)
        if len(table) == len(lines):
            return table
    except (ValueError, Warning) as error:
        reason = str(error).split(";")[0]
    for number, line in enumerate(lines, start=1):
        fault = fault_of_row(line.decode("latin-1").split(), len(codes))
        if fault:
            reason = f"point {number} {fault}"
            break
    raise FileFormatError(f"PCD file: {reason}")


def _typed(values: Array, f: Field) -> Array:
    """Return `values` (N,) or (N, c) in the type of `f`; text can hold what does not fit."""
    dtype = np.dtype(f.code)
    if dtype.kind == "f":
        return values.astype(dtype) if dtype != "f4" or decimals_fit_float32(values) else values
    if values.dtype.kind == "f":
        limits = np.iinfo(dtype)
        good = (values == np.rint(values)) & (values >= limits.min) & (values <= limits.max)
        if not np.all(good):
            wrong = values[~good][0]
            raise FileFormatError(
                f"PCD field '{f.name}' has {wrong}, which is no {f.kind} of {f.size} bytes"
            )
    return values.astype(dtype)


def _write_binary(file: BinaryIO, header: Header, columns: list[Array]) -> None:
    row = _row_type(header.fields)
    for start in range(0, header.points, _ROWS_PER_CHUNK):
        rows = np.empty(min(_ROWS_PER_CHUNK, header.points - start), dtype=row)
        for i, column in enumerate(columns):
            rows[f"f{i}"] = column[start : start + len(rows)]
        file.write(rows.tobytes())


def _write_packed(file: BinaryIO, header: Header, columns: list[Array]) -> None:
    import lzf

    size = header.points * header.row_size
    # Numbers without any order grow by one byte in 32.
    most = size + size // 16 + 64
    if most > _MAX_PACKED:
        raise FileFormatError(
            f"{size} bytes are too many for a compressed PCD; split the cloud or write a PLY"
        )
    body = b"".join(
        column.astype("<" + f.code).tobytes() for f, column in zip(header.fields, columns)
    )
    packed = lzf.compress(body, most) if body else b""
    file.write(_SIZES.pack(len(packed), size))
    file.write(packed)


def _write_ascii(file: BinaryIO, header: Header, columns: list[Array]) -> None:
    words: list[Array] = []
    for f, column in zip(header.fields, columns):
        values = column if column.dtype == np.uint32 else column.astype(f.code)
        if f.is_packed_colour and values.dtype == np.float32 and np.isnan(values).any():
            values = values.view(np.uint32)  # as text, NaNs would lose their bits
        words.extend([values] if values.ndim == 1 else list(values.T))
    text = io.TextIOWrapper(file, encoding="ascii", newline="\n", write_through=True)
    if header.points:
        write_decimal_rows(text, words, " ")
    text.detach()
