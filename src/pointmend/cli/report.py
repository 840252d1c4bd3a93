"""Command line: how results are written down, for people and for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def print_table(rows: Mapping[str, str]) -> None:
    """Print labels and values in two columns."""
    width = max(map(len, rows), default=0)
    for label, value in rows.items():
        print(f"{label:<{width}}  {value}")


def print_json(values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print one JSON object or a list of them; numbers JSON has no word for become null."""
    print(json.dumps(_plain(values), indent=2, allow_nan=False))


def number(value: float) -> str:
    """Write a length with three significant digits."""
    return f"{value:.3g}"


def coordinate(value: float, spacing: float) -> str:
    """Write a coordinate as finely as the points lie, whatever its offset."""
    if not math.isfinite(value):
        return "none"
    if spacing <= 0.0:
        return f"{value:.9g}"
    decimals = min(max(1 - math.floor(math.log10(spacing)), 0), 12)
    return f"{value:.{decimals}f}"


def seconds(value: float) -> str:
    """Write a duration the way people say it."""
    if value < 100.0:
        return f"{value:.2g} s" if value < 10.0 else f"{value:.0f} s"
    return f"{int(value) // 60} min {int(value) % 60:02d} s"


def ratio(value: float, unit: float) -> float | None:
    """Return value / unit, or None where there is no unit to measure in."""
    return value / unit if unit > 0.0 else None


def noise(sigma: float, spacing: float) -> str:
    """Write a noise level in input units and in units of the spacing."""
    share = ratio(sigma, spacing)
    return number(sigma) if share is None else f"{number(sigma)} ({share:.2f} x the spacing)"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
