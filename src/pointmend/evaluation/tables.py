"""Evaluation: results tables, and the formats people paste them into."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Source = Literal["measured", "paper"]


@dataclass(frozen=True)
class Row:
    """
    One line of a table.

    Attributes
    ----------
    label : the method.
    values : by the name of the column; NaN or missing where there is none.
    source : measured here, or printed in the paper.
    group : lines of one group stand together (a test set, a noise pattern).
    """

    label: str
    values: Mapping[str, float]
    source: Source = "measured"
    group: str = ""

    @property
    def title(self) -> str:
        """The label, marked when it is the paper's."""
        return f"{self.label} [paper]" if self.source == "paper" else self.label


@dataclass(frozen=True)
class Table:
    """
    A table of numbers.

    Attributes
    ----------
    title : what it shows.
    columns : names, in order.
    rows : lines, in order.
    notes : what a reader has to know: data, weights, command, what was left out.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = field(default_factory=list)

    @property
    def has_groups(self) -> bool:
        """Whether lines belong to groups."""
        return any(row.group for row in self.rows)

    def cells(self) -> list[list[str]]:
        """All lines as text, the label (after its group, if there are any) first."""
        lines = []
        for row in self.rows:
            head = [row.group, row.title] if self.has_groups else [row.title]
            lines.append(head + [shown(row.values.get(name)) for name in self.columns])
        return lines

    @property
    def heads(self) -> list[str]:
        """Names of all columns, with those of the labels."""
        return [*(["group"] if self.has_groups else []), "method", *self.columns]


def shown(value: float | None) -> str:
    """Write a number with three digits as the paper does; nothing where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    size = abs(value)
    if size >= 100.0:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10.0 else f"{value:.2f}" if size >= 0.1 else f"{value:.3f}"


def to_markdown(table: Table) -> str:
    """A table for a README."""
    lines = [f"### {table.title}", ""]
    lines.append("| " + " | ".join(table.heads) + " |")
    lines.append("|" + "---|" * len(table.heads))
    lines += ["| " + " | ".join(cells) + " |" for cells in table.cells()]
    lines += ["", *table.notes] if table.notes else []
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """A table for a spreadsheet: full precision, one line per row."""
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(["group", "method", "source", *table.columns])
    for row in table.rows:
        values = [row.values.get(name, math.nan) for name in table.columns]
        plain = ["" if not math.isfinite(value) else repr(value) for value in values]
        writer.writerow([row.group, row.label, row.source, *plain])
    return content.getvalue()


def to_json(table: Table) -> str:
    """A table for a program."""
    rows = [
        {
            "group": row.group,
            "method": row.label,
            "source": row.source,
            "values": {k: v for k, v in row.values.items() if math.isfinite(v)},
        }
        for row in table.rows
    ]
    content = {"title": table.title, "columns": list(table.columns), "rows": rows}
    return json.dumps({**content, "notes": list(table.notes)}, indent=1) + "\n"


def to_latex(table: Table) -> str:
    """A table for a paper (booktabs); the best measured number of each column is bold."""
    heads = [_escaped(head) for head in table.heads]
    labels = len(heads) - len(table.columns)
    lines = [
        f"% {table.title}",
        rf"\begin{{tabular}}{{{'l' * labels}{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
    ]
    best = _least_measured(table)
    for row, cells in zip(table.rows, table.cells()):
        texts = [_escaped(cell) for cell in cells]
        for place, name in enumerate(table.columns):
            if row.source == "measured" and row.values.get(name) == best.get((row.group, name)):
                texts[labels + place] = rf"\textbf{{{texts[labels + place]}}}"
        lines.append(" & ".join(texts) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _least_measured(table: Table) -> dict[tuple[str, str], float]:
    """The smallest measured number of each group and column."""
    least: dict[tuple[str, str], float] = {}
    for row in table.rows:
        for name, value in row.values.items():
            if row.source == "measured" and math.isfinite(value):
                key = (row.group, name)
                least[key] = min(value, least.get(key, math.inf))
    return least


def _escaped(text: str) -> str:
    """Text that LaTeX prints as it is."""
    for sign in "%_&#":
        text = text.replace(sign, "\\" + sign)
    return text


WRITERS = {"md": to_markdown, "csv": to_csv, "json": to_json, "tex": to_latex}
