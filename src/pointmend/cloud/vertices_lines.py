"""Room `cloud`: text files in which the vertices of a mesh are lines among others."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.columns import decimal_strings, fault_of_row
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

Array = npt.NDArray[Any]
COLOURS = ("red", "green", "blue")


def span_of_content(found: re.Match[bytes], group: int) -> tuple[int, int]:
    """Return where `group` of a match begins and ends without the blanks around it."""
    text = found[group]
    start = found.start(group) + len(text) - len(text.lstrip())
    return start, start + len(text.strip())


@dataclass(frozen=True, eq=False)
class NumberLines:
    """
    A text, and where in it the rows of numbers are that may change.

    Parameters
    ----------
    body : bytes
        The whole file.
    spans : (N, 2) int64
        Where the numbers of each row begin and end.
    """

    body: bytes
    spans: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.spans)

    def texts(self) -> Iterator[bytes]:
        """Yield the numbers of each row as they stand."""
        return (self.body[start:end] for start, end in self.spans.tolist())

    def words(self) -> Iterator[list[str]]:
        """Yield the numbers of each row one by one, split where numpy splits them."""
        return (text.decode("latin-1").split() for text in self.texts())

    def table(self) -> npt.NDArray[np.float64]:
        """
        Return the numbers (N, c), or only the first three of each row if rows differ in length.

        Raises
        ------
        FileFormatError
            If a row has fewer than three, or something that is no number.
        """
        if len(self) == 0:
            return np.empty((0, 3))
        lines = (text.decode("latin-1") for text in self.texts())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # numpy warns if all rows are empty
                found = np.loadtxt(lines, dtype=np.float64, comments=None, ndmin=2)
            if len(found) == len(self) and found.shape[1] >= 3:
                return found
        except (ValueError, UserWarning):
            pass  # rows differ, or one is broken
        positions = np.empty((len(self), 3))
        for row, words in enumerate(self.words()):
            fault = fault_of_row(words, max(3, len(words)))
            if fault:
                line = self.body.count(b"\n", 0, int(self.spans[row, 0])) + 1
                raise FileFormatError(f"line {line} {fault}")
            positions[row] = [float(word) for word in words[:3]]
        return positions

    def has_rest(self) -> bool:
        """Tell whether a row has more than three numbers."""
        return any(len(words) > 3 for words in self.words())

    def replaced(self, rows: npt.NDArray[np.intp], texts: Iterable[bytes]) -> bytes:
        """Return the file with the numbers of `rows` (M,), ascending, replaced by `texts` (M)."""
        pieces: list[bytes] = []
        place = 0
        for (start, end), text in zip(self.spans[rows].tolist(), texts):
            pieces += (self.body[place:start], text)
            place = end
        return b"".join([*pieces, self.body[place:]])

    def with_columns(self, columns: Sequence[Array], keep_rest: bool) -> bytes:
        """
        Return the file with the rows holding `columns` ((N,) each); rows that do so stay as text.

        Parameters
        ----------
        columns : sequence of (N,) arrays
            At least x, y and z.
        keep_rest : bool
            Whether what a row has beyond these columns stays behind them, or is dropped.
        """
        old = self.table()
        changed = np.full(len(self), not keep_rest and old.shape[1] != len(columns))
        for i, column in enumerate(columns):
            changed |= _differ(old[:, i], column) if i < old.shape[1] else True
        rows = np.flatnonzero(changed)
        new: Iterator[str] = map(
            " ".join, zip(*(decimal_strings(column[rows]) for column in columns))
        )
        if keep_rest:
            olds = (self.body[start:end].decode("latin-1") for start, end in self.spans[rows])
            rests = (old.split(None, len(columns))[len(columns) :] for old in olds)
            new = (" ".join([row, *rest]) for row, rest in zip(new, rests))
        return self.replaced(rows, (row.encode("latin-1") for row in new))


def _differ(a: npt.NDArray[np.float64], b: Array) -> npt.NDArray[np.bool_]:
    """Tell for each of two (N,) whether they are other numbers; 0 and -0 are, two NaNs are not."""
    double = b.astype(np.float64)
    other: npt.NDArray[np.bool_] = (a != double) | (np.signbit(a) != np.signbit(double))
    return other & ~(np.isnan(a) & np.isnan(double))


def attribute_columns(
    lines: NumberLines, table: npt.NDArray[np.float64], names: Sequence[str]
) -> dict[str, Array]:
    """
    Return the columns of `table` (N, 3 + len(names) or more) behind x, y, z as attributes.

    Colours written as whole numbers of one byte are uint8, unless none is above 1 (then they are
    parts of 1 like any other); everything else is float64.
    """
    places = [3 + i for i, name in enumerate(names) if name in (*COLOURS, "alpha")]
    values = table[:, places]
    are_bytes = 1 < values.max(initial=0) <= 255 and all(
        words[i].isdigit() for words in lines.words() for i in places
    )
    return {
        name: table[:, i].astype(np.uint8 if are_bytes and i in places else np.float64)
        for i, name in enumerate(names, start=3)
    }


def plain_numbers(cloud: PointCloud, name: str) -> Array | None:
    """Return attribute `name` as a column (N,) of real numbers, or None if it is none."""
    values = cloud.attributes.get(name)
    if values is None or values.dtype.kind not in "biuf" or values.size != len(cloud):
        return None
    return values.reshape(-1)


def lost_attributes(cloud: PointCloud, kept: Iterable[str]) -> tuple[str, ...]:
    """Return how to call the attributes of `cloud` that are not `kept`."""
    known = set(kept)
    return tuple(f"attribute '{name}'" for name in cloud.attributes if name not in known)
