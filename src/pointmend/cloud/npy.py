"""Room `cloud`: NumPy files (.npy and .npz), read without pickle and without trusting headers."""

from __future__ import annotations

import ast
import math
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import find_xyz
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud
from pointmend.cloud.precision import holds, resolution, stored_type
from pointmend.errors import FileFormatError

Array = npt.NDArray[Any]
_MAX_HEADER = 1 << 16
_POINT_KEYS = ("points", "positions")
# Deflate cannot pack better than this; an archive that claims more is lying about its size.
_MAX_PACKING = 1040
# What literal_eval and numpy's type parser raise on nonsense, deep nesting included.
_BAD_HEADER = (
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
)
# What zipfile raises on nonsense; encrypted members are a RuntimeError.
_BAD_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)


@dataclass(frozen=True, eq=False)
class NumpyLayout:
    """
    How the points were stored; kept as `metadata["npy"]` or `metadata["npz"]`.

    Parameters
    ----------
    dtypes : tuple of three dtypes
        Of x, y and z.
    resolution : float
        What these could tell apart.
    fields : tuple of str
        The columns of the array: x, y, z and the attributes inside it, in order.
    structured : bool
        Whether the columns are the named fields of one record per point.
    key : str
        The array's name in an archive.
    compression : int
        Of the archive.
    others : dict of arrays
        Arrays of the archive that do not belong to single points.
    """

    dtypes: tuple[np.dtype[Any], ...]
    resolution: float
    fields: tuple[str, ...]
    structured: bool
    key: str = "points"
    compression: int = zipfile.ZIP_STORED
    others: dict[str, Array] = field(default_factory=dict)


_DEFAULT = NumpyLayout((np.dtype(np.float64),) * 3, 0.0, ("x", "y", "z"), structured=False)


def read_npy(path: Path) -> PointCloud:
    """
    Read an array (N, 3), (N, c) or of N records with fields x, y and z.

    Columns after the third become attributes `column_3` and so on, fields keep their names.
    """
    with path.open("rb") as file:
        array = _read_array(file, os.fstat(file.fileno()).st_size)
    positions, attributes, layout = _take_apart(array)
    return PointCloud(positions, attributes, {"npy": layout})


def read_npz(path: Path) -> PointCloud:
    """Read an archive with an array `points` or `positions`; arrays as long are attributes."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays, compression = _read_archive(archive, path.stat().st_size)
    except _BAD_ARCHIVE as error:
        raise FileFormatError(f"is not a readable .npz archive: {error}") from error
    key = _key_of_points(arrays)
    positions, attributes, layout = _take_apart(arrays.pop(key))
    others: dict[str, Array] = {}
    for name, array in arrays.items():
        per_point = array.ndim in (1, 2) and len(array) == len(positions)
        fits = per_point and array.dtype.kind != "V" and name not in attributes
        (attributes if fits else others)[name] = _native(array) if fits else array
    layout = NumpyLayout(
        layout.dtypes,
        layout.resolution,
        layout.fields,
        layout.structured,
        key,
        compression,
        others,
    )
    return PointCloud(positions, attributes, {"npz": layout})


def _read_archive(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Array], int]:
    arrays: dict[str, Array] = {}
    compression = zipfile.ZIP_STORED
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name == member.filename or name in arrays:
            raise FileFormatError(f"archive member {member.filename!r} is not an array of its own")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileFormatError(f"array {name!r} is packed in an unknown way")
        packed = member.compress_size
        if packed > size or member.file_size > packed * _MAX_PACKING + _MAX_HEADER:
            raise FileFormatError(f"array {name!r} claims {member.file_size} bytes from {packed}")
        compression = max(compression, member.compress_type)
        with archive.open(member) as file:
            arrays[name] = _read_array(file, member.file_size)
    return arrays, compression


def _key_of_points(arrays: dict[str, Array]) -> str:
    for key in _POINT_KEYS:
        if key in arrays:
            return key
    candidates = [
        name for name, a in arrays.items() if (a.ndim == 2 and a.shape[1] == 3) or a.dtype.names
    ]
    if len(arrays) == 1:
        candidates = list(arrays)
    if len(candidates) != 1:
        raise FileFormatError(
            f"archive needs an array 'points' of shape (N, 3), it has: {', '.join(arrays)[:200]}"
        )
    return candidates[0]


def _read_array(file: IO[bytes], size: int) -> Array:
    """Read one array of a stream of `size` bytes, after comparing its header with that size."""
    magic = file.read(8)
    if magic[:6] != b"\x93NUMPY" or len(magic) < 8 or magic[6] not in (1, 2, 3):
        raise FileFormatError("is not a NumPy array file")
    width = 2 if magic[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > min(size, _MAX_HEADER):
        raise FileFormatError(f"NumPy header claims {length} bytes")
    dtype, fortran, shape = _parse_header(file.read(length), magic[6])
    needed, left = math.prod(shape) * dtype.itemsize, size - 8 - width - length
    if needed > left:
        raise FileFormatError(
            f"NumPy header declares shape {shape} of {dtype}, {needed} bytes, but {left} follow"
        )
    flat = np.empty(math.prod(shape), dtype=dtype)
    view = flat.view(np.uint8).data
    filled = 0
    while filled < flat.nbytes:
        got = file.readinto(view[filled : filled + (1 << 24)])  # type: ignore[attr-defined]
        if not got:
            raise FileFormatError(f"NumPy data ends after {filled} of {flat.nbytes} bytes")
        filled += got
    return flat.reshape(shape, order="F" if fortran else "C")


def _parse_header(raw: bytes, version: int) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    try:
        described = ast.literal_eval(raw.decode("utf-8" if version == 3 else "latin-1").strip())
        dtype = np.lib.format.descr_to_dtype(described["descr"])
        fortran, shape = described["fortran_order"], described["shape"]
        good = isinstance(fortran, bool) and isinstance(shape, tuple)
        good = good and all(type(n) is int and n >= 0 for n in shape)
    except _BAD_HEADER as error:
        raise FileFormatError("NumPy header is damaged") from error
    if not good:
        raise FileFormatError("NumPy header is damaged")
    if dtype.hasobject:
        raise FileFormatError("NumPy file holds Python objects, not numbers; save plain arrays")
    if dtype.itemsize == 0:
        raise FileFormatError("NumPy file holds values of no size")
    return dtype, fortran, shape


def _take_apart(array: Array) -> tuple[npt.NDArray[np.float64], dict[str, Array], NumpyLayout]:
    """Return positions (N, 3), the attributes inside the array, and how it was laid out."""
    columns: dict[str, Array]
    if array.dtype.names:
        if array.ndim != 1:
            raise FileFormatError(f"records must have shape (N,), got {array.shape}")
        names = array.dtype.names
        columns = {name: array[name] for name in names}
        xyz = find_xyz(names)
        if xyz is None or any(columns[names[i]].ndim != 1 for i in xyz):
            raise FileFormatError(f"records have no fields x, y and z: {', '.join(names)[:80]}")
    else:
        if array.ndim != 2 or array.shape[1] < 3:
            turned = "; transpose it" if array.ndim == 2 and array.shape[0] == 3 else ""
            raise FileFormatError(f"the array must have shape (N, 3), got {array.shape}{turned}")
        names = ("x", "y", "z", *(f"column_{i}" for i in range(3, array.shape[1])))
        columns = {name: array[:, i] for i, name in enumerate(names)}
        xyz = (0, 1, 2)
    axes = [columns.pop(names[i]) for i in xyz]
    if any(axis.dtype.kind not in "fiu" for axis in axes):
        raise FileFormatError(f"positions must be real numbers, got {axes[0].dtype}")
    positions = np.stack([axis.astype(np.float64) for axis in axes], axis=1)
    dtypes = tuple(axis.dtype.newbyteorder("=") for axis in axes)
    layout = NumpyLayout(
        dtypes,
        max(resolution(positions, dtype) for dtype in dtypes),
        tuple(names),
        structured=bool(array.dtype.names),
    )
    return positions, {name: _native(values) for name, values in columns.items()}, layout


def _native(values: Array) -> Array:
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))


def _layout_of(cloud: PointCloud, key: str) -> NumpyLayout:
    layout = cloud.metadata.get(key)
    return layout if isinstance(layout, NumpyLayout) else _DEFAULT


def _put_together(cloud: PointCloud, layout: NumpyLayout, inside: dict[str, Array]) -> Array:
    """Return the array of positions and the attributes `inside`; the inverse of `_take_apart`."""
    xyz = find_xyz(layout.fields) or (0, 1, 2)
    columns: dict[str, Array] = {}
    for i, name in enumerate(layout.fields):
        if i in xyz:
            axis = xyz.index(i)
            values = cloud.positions[:, axis]
            columns[name] = values.astype(
                stored_type(values, layout.dtypes[axis], layout.resolution)
            )
        elif name in inside:
            columns[name] = inside[name]
    columns.update({name: values for name, values in inside.items() if name not in columns})
    default = ["x", "y", "z", *(f"column_{i}" for i in range(3, len(columns)))]
    if not layout.structured and list(columns) == default:
        plain = _same_type(list(columns.values()))
        if plain is not None:
            return plain
    records = np.empty(
        len(cloud), dtype=[(name, v.dtype, v.shape[1:]) for name, v in columns.items()]
    )
    for name, values in columns.items():
        records[name] = values
    return records


def _same_type(columns: list[Array]) -> Array | None:
    """Return `columns` (N,) side by side, (N, c), if one type holds them all unchanged."""
    wanted = np.result_type(*columns[:3])
    if any(column.ndim != 1 or column.dtype.kind not in "fiu" for column in columns):
        return None
    for candidate in (wanted, np.dtype(np.float64)):
        if all(holds(candidate, column) for column in columns):
            return np.stack([column.astype(candidate) for column in columns], axis=1)
    return None


def _save(file: IO[bytes], array: Array) -> None:
    # Names outside ASCII need the newest version; numpy finds that itself, but warns about it.
    newest = any(not name.isascii() for name in array.dtype.names or ())
    version = (3, 0) if newest else None
    np.lib.format.write_array(file, array, version, allow_pickle=False)


def write_npy(cloud: PointCloud, path: Path) -> None:
    """Write one array, in the form the cloud's own .npy had; new attributes make it records."""
    array = _put_together(cloud, _layout_of(cloud, "npy"), cloud.attributes)
    with path.open("wb") as file:
        _save(file, array)


def write_npz(cloud: PointCloud, path: Path) -> None:
    """Write an archive with the positions (`points`) and one array per attribute."""
    layout = _layout_of(cloud, "npz")
    inside = {name: v for name, v in cloud.attributes.items() if name in layout.fields}
    outside = {name: v for name, v in cloud.attributes.items() if name not in layout.fields}
    outside.update({name: v for name, v in layout.others.items() if name not in outside})
    if layout.key in outside:
        raise FileFormatError(f"attribute '{layout.key}' has the name of the points; rename it")
    arrays = {layout.key: _put_together(cloud, layout, inside), **outside}
    with zipfile.ZipFile(path, "w", layout.compression) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(
                f"{name}.npy"
            )  # without the time of day: same cloud, same file
            member.compress_type = layout.compression
            with archive.open(member, "w", force_zip64=True) as file:
                _save(file, array)


def _precision(key: str) -> Any:
    return lambda cloud: _layout_of(cloud, key).resolution


NPY = Format("NumPy array", (".npy",), read_npy, write_npy, _precision("npy"))
NPZ = Format("NumPy archive", (".npz",), read_npz, write_npz, _precision("npz"))
