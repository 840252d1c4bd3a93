"""Experiments: the paper's experiments by name, and what a run of them leaves on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pointmend.evaluation.report import html_report
from pointmend.evaluation.tables import WRITERS

from .ablations import loss_weight, table3, thin
from .bench import Findings, Workbench
from .paper_tables import table1, table2, table4
from .scans import scans
from .sweeps import eta, iterations

TARGETS: dict[str, Callable[[Workbench], Findings]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "iterations": iterations,
    "eta": eta,
    "lambda": loss_weight,
    "thin": thin,
    "scans": scans,
}


def write_findings(findings: Findings, folder: Path, name: str) -> list[Path]:
    """Write every table in every format, and the report; the report comes first."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"{name}.html"
    pictures = [(picture.title, picture.path) for picture in findings.pictures]
    page = html_report(findings.title, findings.tables, pictures, findings.notes)
    report.write_text(page, encoding="utf-8")
    written = [report]
    for number, table in enumerate(findings.tables):
        stem = name if number == 0 else f"{name}-{number + 1}"
        for suffix, write in WRITERS.items():
            path = folder / f"{stem}.{suffix}"
            path.write_text(write(table), encoding="utf-8")
            written.append(path)
    return written
