"""Room `cloud`: what all formats of named columns share: names, flat columns, decimal text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from pointmend.errors import FileFormatError

_ROWS_PER_CHUNK = 65536


def find_xyz(names: Sequence[str]) -> tuple[int, int, int] | None:
    """Return where x, y and z (or, if these are missing, X, Y and Z) stand in `names`."""
    for wanted in (("x", "y", "z"), ("X", "Y", "Z")):
        if all(name in names for name in wanted):
            return names.index(wanted[0]), names.index(wanted[1]), names.index(wanted[2])
    return None


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs twice, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def flat_columns(
    attributes: Mapping[str, npt.NDArray[Any]], forbidden: str
) -> dict[str, npt.NDArray[Any]]:
    """
    Return the attributes as columns (N,); one of shape (N, c) becomes `name_0` ... `name_{c-1}`.

    Parameters
    ----------
    attributes : dict of (N,) or (N, c) arrays
    forbidden : str
        Regular expression of what a column's name cannot contain in this format; replaced by "_".
    """
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, values in attributes.items():
        if values.dtype.kind not in "biuf":
            raise FileFormatError(
                f"attribute '{name}' is {values.dtype}; this format holds real numbers only"
            )
        base = re.sub(forbidden, "_", name.strip()) or "_"
        if values.ndim == 1 or values.shape[1] == 1:
            parts = {base: values.reshape(-1)}
        else:
            parts = {f"{base}_{i}": values[:, i] for i in range(values.shape[1])}
        taken = columns.keys() & parts.keys() | parts.keys() & {"x", "y", "z"}
        if taken:
            raise FileFormatError(
                f"attribute '{name}' would be written as '{min(taken)}', a name already taken; "
                "rename it"
            )
        columns.update(parts)
    return columns


def decimal_strings(values: npt.NDArray[Any]) -> list[str]:
    """Return the shortest decimal text of each of `values` (N,) that reads back as the same."""
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    if values.dtype.kind == "f" and values.dtype.itemsize != 8:
        return list(map(str, values))  # numpy scalars know the shortest text of their own type
    return list(map(repr, values.tolist()))


def write_decimal_rows(
    file: TextIO, columns: Sequence[npt.NDArray[Any] | Sequence[str]], delimiter: str
) -> None:
    """Write `columns` ((N,) arrays, or ready-made text) side by side, a chunk of rows at a time."""
    for start in range(0, len(columns[0]), _ROWS_PER_CHUNK):
        pieces = (column[start : start + _ROWS_PER_CHUNK] for column in columns)
        texts = [decimal_strings(p) if isinstance(p, np.ndarray) else p for p in pieces]
        file.write("\n".join(map(delimiter.join, zip(*texts))))
        file.write("\n")


def is_number(word: str) -> bool:
    """Tell whether `word` is a decimal number as files have them (nan and inf are numbers)."""
    try:
        float(word)
    except ValueError:
        return False
    return word.isascii() and "_" not in word


def fault_of_row(fields: Sequence[str], width: int) -> str | None:
    """Say what keeps `fields` from being a row of `width` numbers, or None if nothing does."""
    if len(fields) != width:
        return f"has {len(fields)} values where {width} are expected"
    for field in fields:
        if not is_number(field):
            hint = " (write decimals with a point)" if is_number(field.replace(",", ".")) else ""
            return f"has {field[:40]!r} where a number is expected{hint}"
    return None
