"""Viewer: what a page says, as small pieces of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from html import escape
from pathlib import Path

import numpy as np

from pointmend.cli.report import noise, number, seconds
from pointmend.cloud.files import known_suffixes
from pointmend.evaluation.figures import colour_map

from .scan import LABELS, Scan
from .thinning import SHOWN_POINTS
from .uploads import UPLOAD_LIMIT

_SCRIPTS = Path(__file__).parent
_PAD = "padding:0 .75em .6em;font-size:.875em;line-height:1.45"
# An image of one pixel; its loading starts the script beside it.
_PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="


def welcome(first: bool) -> str:
    """What to do first, and how large a file may be; and the script that lets files be dropped."""
    limit = f"{UPLOAD_LIMIT / 1e6:,.0f} MB"
    kinds = " ".join(suffix.lstrip(".").upper() for suffix in known_suffixes())
    script = escape(_script("drop.js").replace("LIMIT_BYTES", str(UPLOAD_LIMIT)))
    said = "Drop another scan anywhere, or choose one."
    if first:
        said = (
            f"<b>Drop a scan anywhere on this page</b>, or choose one. Up to {limit}; larger ones "
            f'by their path. <span style="opacity:.6">{kinds}</span>'
        )
    return (
        f'<div style="{_PAD}">{said}'
        '<div id="pointmend-refused" role="alert" style="color:#c92a2a"></div>'
        f'<img src="{_PIXEL}" alt="" style="display:none" onload="{script}"></div>'
    )


def facts(scan: Scan) -> str:
    """What is known about a scan before anything is done to it."""
    cloud, shown = scan.cloud, len(scan.rows)
    points = f"{len(cloud):,}"
    invalid = int(np.sum(~np.isfinite(cloud.positions).all(axis=1)))
    if invalid:
        points += f", {invalid:,} not finite"
    if shown == SHOWN_POINTS:
        points += f" ({shown:,} of them shown)"
    rows = {"points": points, "attributes": ", ".join(cloud.attributes) or "none"}
    if scan.estimate is None:
        return table(rows | {"noise": "being estimated ..."})
    estimate = scan.estimate
    rows["spacing"] = number(estimate.spacing)
    rows["noise"] = noise(estimate.sigma, estimate.spacing)
    said = table(rows)
    if estimate.nothing_to_gain:
        said += note("Nothing to gain: this scan is clean, and denoising leaves it as it is.", "ok")
    elif not estimate.in_trained_range:
        said += note("Noise or spacing lie outside what the model was trained on.", "careful")
    return said


def statistics(scan: Scan) -> str:
    """What the last run has done."""
    outcome = scan.outcome
    if outcome is None:
        return ""
    result = outcome.result
    moved, total = int(np.sum(result.displacement > 0.0)), len(result.points)
    before, after = scan.roughness()
    origin = "estimated" if outcome.settings.sigma is None else "given"
    rows = {
        "noise": f"{noise(result.sigma, result.spacing)}, {origin}",
        "moved points": f"{moved:,} of {total:,}",
        "displacement": f"{number(_rms(result.displacement))} RMS, "
        f"{number(float(result.displacement.max(initial=0.0)))} at most",
        "roughness": f"{number(before)} before, {number(after)} after",
        "time": seconds(outcome.seconds),
    }
    if outcome.settings.outliers is not None:
        rows["outliers"] = f"{int(result.outlier.sum()):,} flagged (red), not moved"
    said = table(rows)
    if moved == 0:
        said += note("Nothing to gain: all points are where they were.", "ok")
    return said


def legend(by: str, top: float) -> str:
    """A bar of colours with numbers; nothing for original colours."""
    if by not in LABELS:
        return ""
    stops = np.rint(255.0 * colour_map(np.linspace(0.0, 1.0, 13))).astype(int)
    colours = ",".join(f"rgb({r},{g},{b})" for r, g, b in stops.tolist())
    numbers = "".join(
        f"<span>{text}</span>" for text in ("0", number(0.5 * top), f"{number(top)} or more")
    )
    return (
        f'<div style="{_PAD}"><div>{escape(LABELS[by])}</div>'
        f'<div style="height:.8em;border-radius:3px;background:linear-gradient(90deg,{colours})">'
        '</div><div style="display:flex;justify-content:space-between">'
        f'{numbers}</div><div style="opacity:.6">in the units of the scan</div></div>'
    )


def command(line: str) -> str:
    """A command line with a button that copies it."""
    copy = "navigator.clipboard.writeText(this.nextElementSibling.textContent);"
    copy += "this.textContent='copied'"
    return (
        f'<div style="{_PAD}">The same from a terminal: <button onclick="{copy}" '
        'style="float:right;border:1px solid #adb5bd;border-radius:4px;background:none;'
        'padding:0 .6em;cursor:pointer">copy</button>'
        '<code style="display:block;margin-top:.4em;padding:.5em;border-radius:4px;'
        'background:rgba(128,128,128,.12);overflow-wrap:anywhere;white-space:pre-wrap">'
        f"{escape(line)}</code></div>"
    )


def status(text: str) -> str:
    """Where a run stands."""
    return f'<div style="{_PAD}">{escape(text)}</div>'


def note(text: str, kind: str) -> str:
    """A coloured line: "ok" is green, "careful" is yellow."""
    colour = {"ok": "43,138,62", "careful": "230,119,0"}[kind]
    return (
        f'<div style="{_PAD}"><div style="padding:.4em .6em;border-radius:4px;'
        f'border-left:3px solid rgb({colour});background:rgba({colour},.1)">{escape(text)}</div>'
        "</div>"
    )


def table(rows: Mapping[str, str]) -> str:
    """Labels and values in two columns."""
    cells = "".join(
        f'<tr><td style="opacity:.6;padding-right:.8em;vertical-align:top">{escape(label)}</td>'
        f"<td>{escape(value)}</td></tr>"
        for label, value in rows.items()
    )
    return f'<div style="{_PAD}"><table>{cells}</table></div>'


@lru_cache
def _script(name: str) -> str:
    return (_SCRIPTS / name).read_text(encoding="utf-8")


def _rms(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
