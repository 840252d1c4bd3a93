"""Experiments: real scans, pictures and figures that need no ground truth."""

from __future__ import annotations

from pathlib import Path

from pointmend.cloud.files import known_suffixes, read
from pointmend.errors import InputError, PointmendError
from pointmend.evaluation.noreference import scan_figures
from pointmend.evaluation.sheets import Panel, contact_sheet
from pointmend.evaluation.tables import Row, Table
from pointmend.geometry.ordering import valid_rows
from pointmend.methods.method import Float64, Task
from pointmend.methods.registry import contestants

from .bench import Findings, Picture, Workbench

SCAN_METHODS = ("identity", "bilateral", "pointmend")
FIGURES = {
    "residual": "plane residual",
    "moved_rms": "moved, RMS",
    "moved_percentile_95": "moved, 95 %",
    "moved_largest": "moved, most",
    "spacing": "spacing",
    "spacing_variation": "unevenness",
}
# More points than this are thinned, so that every method can take part.
MOST_POINTS = 150_000


def scans(bench: Workbench) -> Findings:
    """Every scan of a folder: DATA/real when there is one, else DATA itself."""
    folder = bench.data / "real" if (bench.data / "real").is_dir() else bench.data
    findings = Findings("Real scans", notes=["No ground truth: the smoother is not the better."])
    methods = contestants(bench.methods or SCAN_METHODS, data=bench.data, model=bench.model)
    rows: list[Row] = []
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in known_suffixes())
    for number, path in enumerate(paths[: bench.grid.shapes]):
        try:
            scan = read_scan(path)
        except PointmendError as error:
            findings.notes.append(f"skipped {path.name}: {error}")
            continue
        panels = []
        for method in methods:
            bench.grid.tell(number, len(paths), f"{method.name}, {path.name}")
            result = method.method(Task(scan))
            figures = scan_figures(scan, result)
            values = {title: float(getattr(figures, name)) for name, title in FIGURES.items()}
            rows.append(Row(method.name, values, group=path.name))
            local = result - scan.mean(axis=0)
            panels.append(Panel(local, figures.residuals, f"residual {figures.residual:.3g}"))
        bench.out.mkdir(parents=True, exist_ok=True)
        picture = bench.out / f"scan-{path.stem}.png"
        titles = [method.name for method in methods]
        contact_sheet([panels], titles, picture, label="distance of neighbours to their plane")
        findings.pictures.append(Picture(path.name, picture))
    if not rows:
        raise InputError(f"{folder}: no scan that can be read ({' '.join(known_suffixes())})")
    title = "Real scans, in the units of each"
    findings.tables.append(Table(title, list(FIGURES.values()), rows))
    return findings


def read_scan(path: Path) -> Float64:
    """The finite points (N, 3) of a scan, evenly thinned when there are very many."""
    points = read(path).positions
    points = points[valid_rows(points)]
    if len(points) < 100:
        raise InputError(f"{len(points)} finite points are no scan")
    return points[:: -(-len(points) // MOST_POINTS)]
