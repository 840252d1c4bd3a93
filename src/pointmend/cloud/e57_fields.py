"""Room `cloud`: the numbers of an E57 point record, and which node type holds given values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pointmend.cloud.e57_tree import DOUBLE_MAX, INT64, SINGLE_MAX, Node
from pointmend.cloud.precision import holds, resolution

Array = npt.NDArray[Any]
_WHOLE = tuple(np.dtype(code) for code in ("u1", "i1", "u2", "i2", "u4", "i4", "i8"))
_FAR = 2.0**62


class Field(ABC):
    """How one number per point is stored."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """What one number takes in the file."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers as an attribute."""

    @property
    @abstractmethod
    def raw_type(self) -> np.dtype[Any]:
        """The type in which the library hands over what is in the file."""

    @abstractmethod
    def decode(self, raw: Array) -> Array:
        """Return the numbers that `raw` (M,) of `raw_type` stand for."""

    @abstractmethod
    def nearest(self, values: Array) -> tuple[Field, Array] | None:
        """
        Return the nearest to `values` (M,) that can be stored, as `raw_type` (M,), or None.

        The field comes back with limits wide enough for them.
        """

    @abstractmethod
    def step(self, values: Array) -> float:
        """Return what numbers as large as `values` (M,) can be told apart by; 0 if exactly."""

    @abstractmethod
    def node(self) -> Node:
        """Return the node that describes the field in a file."""

    def exactly(self, values: Array) -> tuple[Field, Array] | None:
        """Return `nearest` if it is `values` (M,) to the last bit, else None."""
        found = self.nearest(values)
        if found is not None and np.array_equal(found[0].decode(found[1]), values, equal_nan=True):
            return found
        return None


@dataclass(frozen=True)
class IntegerField(Field):
    """Whole numbers (scale None), or whole numbers times `scale` plus `offset`."""

    minimum: int
    maximum: int
    scale: float | None = None
    offset: float = 0.0

    @property
    def bits(self) -> int:
        """What one number takes in the file; nothing if all are the same."""
        return (self.maximum - self.minimum).bit_length()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type that has the limits, or float64 for scaled numbers."""
        if self.scale is not None:
            return np.dtype(np.float64)
        limits = ((dtype, np.iinfo(dtype)) for dtype in _WHOLE)
        return next(d for d, i in limits if i.min <= self.minimum and self.maximum <= i.max)

    @property
    def raw_type(self) -> np.dtype[Any]:
        """
        The one integer type that the library takes for what it is on every system.

        Make arrays for it with np.empty: conversions may keep "l", which it takes for 32 bits.
        """
        return np.dtype("q")

    def decode(self, raw: Array) -> Array:
        """Return `raw` (M,) scaled as float64, or as it is."""
        return raw if self.scale is None else raw * self.scale + self.offset

    def nearest(self, values: Array) -> tuple[Field, Array] | None:
        """Round to a scaled number; unscaled ones are only taken if they are whole."""
        if self.scale is None:
            if not holds(np.dtype(np.int64), values):
                return None
            raw = values.astype(self.raw_type)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                whole = np.rint((values - self.offset) / self.scale)
            if not np.all(np.abs(whole) < _FAR):
                return None
            raw = whole.astype(self.raw_type)
        low = int(raw.min(initial=self.minimum))
        high = int(raw.max(initial=self.maximum))
        return replace(self, minimum=low, maximum=high), raw

    def step(self, values: Array) -> float:
        """Return the scale; whole numbers are exact."""
        return abs(self.scale or 0.0)

    def node(self) -> Node:
        """Return an Integer or ScaledInteger."""
        said = {"minimum": str(self.minimum), "maximum": str(self.maximum)}
        inside = str(min(max(0, self.minimum), self.maximum))
        if self.scale is None:
            return Node("Integer", inside, said)
        said |= {"scale": repr(self.scale), "offset": repr(self.offset)}
        return Node("ScaledInteger", inside, said)


@dataclass(frozen=True)
class FloatField(Field):
    """Floating-point numbers of single or double precision."""

    single: bool = False
    minimum: float = -DOUBLE_MAX
    maximum: float = DOUBLE_MAX

    @property
    def bits(self) -> int:
        """What one number takes in the file."""
        return 32 if self.single else 64

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return float32 or float64."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def raw_type(self) -> np.dtype[Any]:
        """Return float32 or float64."""
        return self.dtype

    def decode(self, raw: Array) -> Array:
        """Return `raw` (M,) as it is."""
        return raw

    def nearest(self, values: Array) -> tuple[Field, Array] | None:
        """Round to the precision; NaN and inf are kept, overflow is not taken."""
        if values.dtype.kind in "iu" and not holds(self.dtype, values):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            raw = values.astype(self.dtype)
        finite = np.isfinite(values)
        if not np.array_equal(finite, np.isfinite(raw)):
            return None
        some = raw[finite]
        inside = np.all(some >= self.minimum) and np.all(some <= self.maximum)
        return (self if inside else FloatField(self.single)), raw

    def step(self, values: Array) -> float:
        """Return the spacing of single precision at the largest of `values` (M,)."""
        return resolution(values.astype(np.float64), self.dtype)

    def node(self) -> Node:
        """Return a Float."""
        said = {"precision": "single"} if self.single else {}
        largest = SINGLE_MAX if self.single else DOUBLE_MAX
        low, high = max(self.minimum, -largest), min(self.maximum, largest)
        if low > -largest or high < largest:
            said |= {"minimum": repr(low), "maximum": repr(high)}
        return Node("Float", repr(min(max(0.0, low), high)), said)


def field_of(node: Node) -> Field | None:
    """Return how the numbers of a prototype's `node` are stored; None if they are no numbers."""
    if node.kind == "Float":
        return FloatField(node.is_single, *node.float_limits())
    if node.kind not in ("Integer", "ScaledInteger"):
        return None
    low, high = node.integer_limits()
    if node.kind == "Integer":
        return IntegerField(low, high)
    return IntegerField(low, high, node.real("scale", 1.0), node.real("offset", 0.0))


def field_for(values: Array) -> Field | None:
    """Return a field of the type of `values` (M,), so that they come back in it; None if none."""
    dtype = values.dtype
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return IntegerField(max(int(limits.min), INT64[0]), min(int(limits.max), INT64[1]))
    if dtype.kind == "f":
        return FloatField(single=dtype.itemsize <= 4)
    return None
