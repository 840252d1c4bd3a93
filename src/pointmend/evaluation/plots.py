"""Evaluation: curves of a sweep as an SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pointmend.errors import InputError


@dataclass(frozen=True)
class Curve:
    """A name for the legend, and where the curve goes through."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def line_plot(curves: Sequence[Curve], path: Path, x_label: str, y_label: str) -> None:
    """
    Draw curves that share their x, which need not be evenly spread.

    Parameters
    ----------
    curves : at least one.
    path : where to write; the suffix (.svg, .png, .pdf) chooses the format.
    x_label, y_label : of the axes.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'pointmend[evaluate]'") from None
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    # Settings like 1 ... 8, 30 are read off as steps, not as lengths.
    places = range(len(curves[0].x))
    for curve in curves:
        axes.plot(places, curve.y, marker="o", markersize=4, label=curve.name)
    axes.set_xticks(list(places), [f"{x:g}" for x in curves[0].x])
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
