"""Room `cloud`: which number type can hold coordinates without losing what their file had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

_SAMPLE = 1000


def resolution(positions: npt.NDArray[np.float64], dtype: np.dtype[Any]) -> float:
    """
    Return the step between neighbouring numbers of `dtype` at the largest of `positions` (N, 3).

    That is what a file with coordinates of this type could tell apart. Integers give 0: they are
    exact or they do not fit. So does float64, the type of all positions.
    """
    if dtype.kind != "f" or dtype.itemsize >= 8:
        return 0.0
    largest = np.abs(positions, where=np.isfinite(positions), out=np.zeros_like(positions))
    with np.errstate(over="ignore"):
        step = np.spacing(largest.max(initial=0.0).astype(dtype))
    return float(step) if np.isfinite(step) else 0.0


def holds(dtype: np.dtype[Any], values: npt.NDArray[Any]) -> bool:
    """
    Tell whether real numbers `values` (any shape) stay exactly the same in `dtype`.

    Casting there and back does not tell: 2**64 - 1 becomes -1 and comes back as 2**64 - 1.
    """
    if values.dtype.kind in "iu":
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        if dtype.kind in "iu":
            return low >= np.iinfo(dtype).min and high <= np.iinfo(dtype).max
        whole = 2 ** (np.finfo(dtype).nmant + 1)
        return -whole <= low and high <= whole and high <= float(np.finfo(dtype).max)
    if dtype.kind in "iu":
        # The largest 64-bit integer is no float, the one after it is: hence "<".
        limits = np.iinfo(dtype)
        fits = (values == np.rint(values)) & ~((values == 0) & np.signbit(values))
        fits &= (values >= float(limits.min)) & (values < float(limits.max + 1))
        return bool(np.all(fits))
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(values.astype(dtype), values, equal_nan=True))


def stored_type(
    values: npt.NDArray[np.float64], came_in: np.dtype[Any], allowed: float
) -> np.dtype[Any]:
    """
    Return `came_in` if it holds the coordinates `values` (N,) to within `allowed`, else float64.

    A float32 file so stays float32 after its points moved a little, but not after they were moved
    to where float32 is coarser than the file was.
    """
    double = np.dtype(np.float64)
    if came_in.kind in "iu":
        return came_in if holds(came_in, values) else double
    if came_in.kind != "f" or came_in.itemsize >= 8:
        return double
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(values.astype(came_in).astype(np.float64) - values)
    held = (error <= allowed) | ~np.isfinite(values)
    return came_in if bool(np.all(held)) else double


def decimals_fit_float32(values: npt.NDArray[np.float64]) -> bool:
    """
    Tell whether decimal text parsed as `values` (any shape) could have been printed from float32.

    Text that declares itself float but carries more (UTM centimetres, usually) must be read as
    double. It is float32 text if one way of printing gives back all of a sample of it.
    """
    flat = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        single = flat.astype(np.float32)
    inexact = np.flatnonzero(single.astype(np.float64) != flat)
    if len(inexact) == 0:
        return True
    picked = inexact[:: max(1, len(inexact) // _SAMPLE)]
    texts, numbers = flat[picked].tolist(), single[picked]
    as_double: list[float] = numbers.astype(np.float64).tolist()

    def explains(printed: Callable[[int], str]) -> bool:
        return all(float(printed(i)) == texts[i] for i in range(len(texts)))

    return (
        explains(lambda i: str(numbers[i]))
        or any(explains(lambda i, d=d: f"{as_double[i]:.{d}g}") for d in range(6, 10))  # type: ignore[misc]
        or any(explains(lambda i, d=d: f"{as_double[i]:.{d}f}") for d in range(13))  # type: ignore[misc]
    )
