"""Room `cloud`: which kind of LAS file fits a cloud that comes from elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import numpy.typing as npt

from pointmend.cloud.las_header import Header, new_header
from pointmend.cloud.las_plan import (
    Kind,
    Plan,
    Source,
    colour_factor,
    colours_in,
    describe_all,
    describing,
    with_extras,
)
from pointmend.cloud.las_points import NEW_FORMATS, OLD_FORMATS, Dimension, dimensions, holding
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError

_STEPS_ACROSS = 1e6  # at least, across the largest extent
_MOST_STEPS_ACROSS = 1e9  # twice that is less than 2**31: room for a round offset
_SAMPLE = 1000
_FINEST = -300  # powers of ten that float64 has
_WKT_ALLOWED = 0b10000  # of the global encoding; the new point formats demand it
_MOST_OLD_POINTS = 0xFFFFFFFF


@dataclass
class Summary:
    """
    What has to be known of all points of a cloud before the first can be written.

    Parameters
    ----------
    count : int
        Points seen.
    low, high : (3,) float64
        Bounds of the finite coordinates; NaN where there are none.
    decimals : int or None
        How many decimals write every coordinate exactly; None if no number does.
    kinds : dict of Kind
        Of the attributes.
    ranges : dict of (int, int)
        Smallest and largest value of those that are whole numbers.
    """

    count: int = 0
    low: npt.NDArray[np.float64] = field(default_factory=lambda: np.full(3, np.nan))
    high: npt.NDArray[np.float64] = field(default_factory=lambda: np.full(3, np.nan))
    decimals: int | None = 0
    kinds: dict[str, Kind] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, cloud: PointCloud) -> Summary:
        """Return the summary of a whole cloud."""
        summary = cls()
        summary.add(cloud)
        return summary

    def add(self, piece: PointCloud) -> None:
        """Take more points into account; they must have the attributes of those before."""
        self.kinds = {name: Kind.of(values) for name, values in piece.attributes.items()}
        self.count += len(piece)
        low, high = piece.bounds()
        self.low, self.high = np.fmin(self.low, low), np.fmax(self.high, high)
        if self.decimals is not None:
            self.decimals = _decimals(piece.positions, self.decimals)
        for name, values in piece.attributes.items():
            if values.dtype.kind in "biu":
                # Every dimension holds 0, so it may be in the range of an empty cloud.
                low_, high_ = self.ranges.get(name, (0, 0))
                self.ranges[name] = int(values.min(initial=low_)), int(values.max(initial=high_))


def _decimals(positions: npt.NDArray[np.float64], fewest: int) -> int | None:
    """Return how many decimals, `fewest` or more, write all of `positions` (N, 3) exactly."""
    sample = positions[:: max(1, len(positions) // _SAMPLE)]
    for decimals in range(fewest, 16):
        if _are_exact(sample, decimals) and _are_exact(positions, decimals):
            return decimals
    return None


def _are_exact(values: npt.NDArray[np.float64], decimals: int) -> bool:
    power = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.all((np.rint(values * power) / power == values) | ~np.isfinite(values)))


def grid(summary: Summary) -> tuple[float, npt.NDArray[np.float64]]:
    """
    Return the step of the grid that the coordinates of a new file lie on, and its zero (3,).

    The step is a power of ten. If the coordinates are decimals (millimetres, say), it is the
    largest on which they all lie, and at most a millionth of the largest extent; otherwise, or if
    these steps would be too many, it is the smallest of which no more than 10**9 reach across, and
    which float64 can tell apart where the cloud is. That is finer than float32 coordinates of the
    same cloud. The zero is a round number just below the smallest coordinate.
    """
    low, high = np.nan_to_num(summary.low), np.nan_to_num(summary.high)
    with np.errstate(over="ignore"):
        extent = float(np.max(high - low))
        farthest = float(np.max(np.maximum(np.abs(low), np.abs(high))))
    if not math.isfinite(extent * 10):
        raise FileFormatError(f"coordinates up to {farthest:g} are too large for LAS")
    least = _power_above(max(extent / _MOST_STEPS_ACROSS, 8 * float(np.spacing(farthest))))
    wanted = least
    if summary.decimals is not None:
        across = _power_below(extent / _STEPS_ACROSS) if extent > 0 else 0
        wanted = max(least, min(-summary.decimals, across))
    round_ = float(f"1e{max(wanted, _power_below(extent) if extent > 0 else wanted)}")
    return float(f"1e{wanted}"), np.floor(low / round_) * round_


def _power_above(value: float) -> int:
    return max(_FINEST, math.ceil(math.log10(value)))


def _power_below(value: float) -> int:
    return max(_FINEST, math.floor(math.log10(value)))


def plan_new(summary: Summary) -> Plan:
    """
    Plan a LAS file for a cloud from elsewhere.

    Attributes that have the name of a LAS dimension, and values that fit it, go there; all others
    become extra bytes. Without any of those it is LAS 1.2 with point format 0 to 3, which every
    program reads; else it is LAS 1.4 with point format 6 to 8.
    """
    plan = _plan(summary, OLD_FORMATS, new_header(2))
    if plan.extras or summary.count > _MOST_OLD_POINTS:
        header = new_header(4).patched(global_encoding=_WKT_ALLOWED)
        plan = _plan(summary, NEW_FORMATS, header)
    return plan


def _plan(summary: Summary, family: range, header: Header) -> Plan:
    wanted = colours_in(summary.kinds, family) | ({"gps_time"} & summary.kinds.keys())
    wanted = {name for name in wanted if _fits(_dimension(name), summary)}
    if not wanted.issuperset({"red", "green", "blue"}):
        wanted &= {"gps_time"}
    point_format = holding(family, wanted, family[0])
    sources = {
        d.name: Source(d.name, factor=colour_factor(d.name, summary.kinds))
        for d in dimensions(point_format)
        if d.name in summary.kinds and _fits(d, summary)
    }
    rest = {name: kind for name, kind in summary.kinds.items() if name not in sources}
    extras, more = describe_all(rest, {d.name for d in dimensions(point_format)})
    step, zero = grid(summary)
    today = date.today()
    header = with_extras(header, point_format, extras).patched(
        scale=(step, step, step),
        offset=tuple(zero.tolist()),
        creation=(today.timetuple().tm_yday, today.year),
    )
    return Plan(header, describing(extras), b"", (), tuple(extras), sources | more)


def _dimension(name: str) -> Dimension:
    return next(d for d in dimensions(NEW_FORMATS[-1]) if d.name == name)


def _fits(d: Dimension, summary: Summary) -> bool:
    """Tell whether every value of the attribute with the name of `d` can be stored there."""
    kind = summary.kinds[d.name]
    if kind.width != 1 or kind.stored is None:
        return False
    if d.dtype.kind == "f":
        low, high = summary.ranges.get(d.name, (0, 0))
        return d.dtype.itemsize == 8 and low >= -(2**53) and high <= 2**53
    if d.name not in summary.ranges:
        return False
    low, high = summary.ranges[d.name]
    if d.bits:
        return low >= 0 and high < 1 << d.bits
    limits = np.iinfo(d.dtype)
    return int(limits.min) <= low and high <= int(limits.max)
