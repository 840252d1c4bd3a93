"""Evaluation: one HTML page with tables and pictures inside, which opens without a network."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from pointmend.errors import InputError

from .tables import Table

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #212529; margin: 2rem auto; max-width: 75rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #dee2e6; }
th:first-child, td:first-child { text-align: left; }
td.label { text-align: left; }
tr.paper { color: #6c757d; }
tr.group td { border-top: 2px solid #adb5bd; }
figure { margin: 1.5rem 0; overflow-x: auto; }
img { max-width: 100%; }
.tables { overflow-x: auto; }
figcaption, p.note { color: #6c757d; }
"""


def html_report(
    title: str,
    tables: Sequence[Table],
    pictures: Sequence[tuple[str, Path]],
    notes: Sequence[str] = (),
) -> str:
    """
    A page.

    Parameters
    ----------
    tables : shown first; the paper's rows are grey.
    pictures : title and file (PNG or SVG) of each.
    notes : lines below the title.
    """
    parts = [f"<h1>{html.escape(title)}</h1>"]
    parts += [f'<p class="note">{html.escape(note)}</p>' for note in notes]
    parts += [_table(table) for table in tables]
    parts += [_figure(caption, path) for caption, path in pictures]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join(parts)
    page = f'<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>'
    return f"<!doctype html>\n{page}\n"


def _table(table: Table) -> str:
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in table.heads)
    labels = len(table.heads) - len(table.columns)
    lines, group = [], None
    for row, cells in zip(table.rows, table.cells()):
        marks = ["paper"] if row.source == "paper" else []
        marks += ["group"] if group not in (None, row.group) else []
        group = row.group
        texts = [
            f'<td class="label">{html.escape(cell)}</td>' if place < labels else f"<td>{cell}</td>"
            for place, cell in enumerate(cells)
        ]
        lines.append(f'<tr class="{" ".join(marks)}">{"".join(texts)}</tr>')
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in table.notes)
    body = "\n".join(lines)
    return (
        f'<h2>{html.escape(table.title)}</h2><div class="tables"><table>\n'
        f"<tr>{heads}</tr>\n{body}\n</table></div>{notes}"
    )


def _figure(caption: str, path: Path) -> str:
    kind = _TYPES.get(path.suffix)
    if kind is None:
        raise InputError(f"{path}: a report holds PNG and SVG pictures")
    content = base64.b64encode(path.read_bytes()).decode()
    name = html.escape(caption)
    return (
        f'<figure><img alt="{name}" src="data:{kind};base64,{content}">'
        f"<figcaption>{name}</figcaption></figure>"
    )
