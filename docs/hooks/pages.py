"""
Hooks of the documentation: what is written once, elsewhere, becomes part of the pages.

- Files beside the code (benchmarks, training log, CHANGELOG, ...) are pages, not copies.
- `<!-- options: NAME -->` becomes the options of a command, from its own `--help`.
- `<!-- figures of the shipped model -->` becomes the figures of its card.
- `room.module.name` in backticks becomes a link to that function's documentation.
- Every room of the package has a page of its functions.
"""

from __future__ import annotations

import contextlib
import io
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pointmend.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "pointmend"

# Files of the repository that are pages, too.
ELSEWHERE = {
    "benchmarks/README.md": "benchmarks.md",
    "training/LOG.md": "training-log.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
ROOMS = (
    "cloud",
    "scans",
    "cluster",
    "denoising",
    "diffusion",
    "network",
    "geometry",
    "training",
    "methods",
    "evaluation",
    "experiments",
)

_LINK = re.compile(r"(\]\()([^)\s#:]+\.(?:md|png|svg))")
_OPTIONS = re.compile(r"<!-- options: (\w+) -->")
_CODE = re.compile(rf"(?<!\[)`((?:{'|'.join(ROOMS)})(?:\.\w+){{2,}})`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files in docs/."""
    for source, page in ELSEWHERE.items():
        text = linked((ROOT / source).read_text(encoding="utf-8"), source)
        files.append(File.generated(config, page, content=text))
    for room in ROOMS:
        files.append(File.generated(config, f"api/{room}.md", content=room_page(room)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in what is generated, and turn names of functions into links."""
    if page.file.generated_by is None:
        markdown = linked(markdown, f"docs/{page.file.src_uri}")
    markdown = _OPTIONS.sub(lambda found: options_table(found[1]), markdown)
    markdown = markdown.replace("<!-- figures of the shipped model -->", model_figures())
    return _CODE.sub(r"[`\1`][pointmend.\1]", markdown)


def linked(markdown: str, source: str) -> str:
    """
    Markdown whose links between files of the repository lead to the pages made from them.

    Parameters
    ----------
    source : the file it stands in, seen from the root of the repository.
    """
    here = posixpath.dirname(page_of(source))

    def change(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        return found[1] + posixpath.relpath(page_of(target), here or ".")

    return _LINK.sub(change, markdown)


def page_of(file: str) -> str:
    """The page a file of the repository becomes, seen from docs/."""
    return ELSEWHERE.get(file, file.removeprefix("docs/"))


def options_table(command: str) -> str:
    """What `pointmend COMMAND --help` says about arguments and options, as a table."""
    rows = ["| argument or option | what it does |", "|---|---|"]
    for name, text in options_from_help(help_text(command)):
        cell = name.replace("|", "\\|")
        plain = re.sub(r"([*_|{}<>])", r"\\\1", text)  # what is no Markdown in a terminal
        rows.append(f"| `{cell}` | {plain} |")
    return "\n".join(rows)


def help_text(command: str) -> str:
    """What `pointmend COMMAND --help` prints."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # where frames can be drawn
    with contextlib.redirect_stdout(said):
        main([command, "--help"])
    said.seek(0)
    return said.read()


def options_from_help(text: str) -> list[tuple[str, str]]:
    """Arguments and options with what is said about them, from the frames of a help text."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if not line.startswith("│"):
            continue
        inside = line.strip("│").removeprefix(" ").rstrip()
        if inside.startswith(" "):
            found[-1].append(inside.strip())
        else:
            found.append(re.split(r"\s{2,}", inside, maxsplit=1))
    return [(name, " ".join(rest)) for name, *rest in found]


def model_figures() -> str:
    """The figures on the card of the shipped weights, as Markdown."""
    card = json.loads((PACKAGE / "weights" / "default.json").read_text(encoding="utf-8"))
    facts, size = card["facts"], (PACKAGE / "weights" / "default.safetensors").stat().st_size
    training = facts["training"]
    rows = [
        ("patches seen", f"{facts['patches']:,} of {training['patch_points']:,} points"),
        ("steps", f"{facts['steps']:,}, {training['batch']} patches each"),
        ("CPU hours", f"{facts['cpu_hours']:g}"),
        ("hash of the training shapes", f"`{facts['data']}`"),
        ("revision of the code", f"`{facts['revision']}`"),
        ("size", f"{size / 1e3:,.0f} kB"),
        ("network", ", ".join(f"{key} {value}" for key, value in card["network"].items())),
    ]
    table = ["| fact | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join([*table, "", *validation_table(facts["validation"])])


def validation_table(rows: list[dict[str, Any]]) -> list[str]:
    """The validation on a card as the lines of a Markdown table."""
    lines = [
        "| points | noise | shapes | CD x 1e4 | P2M x 1e5 | estimated / true noise |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['points']:,} | {row['level']:.0%} | {row['shapes']} | {row['cd']:.2f} "
        f"| {row['p2m']:.2f} | {row['sigma_ratio']:.2f} |"
        for row in rows
    ]
    return lines


def room_page(room: str) -> str:
    """A page that documents every module of a room."""
    parts = [f"# `pointmend.{room}`", f"::: pointmend.{room}\n    options: {_TEXT_ONLY}"]
    for module in sorted((PACKAGE / room).glob("[!_]*.py")):
        name = f"pointmend.{room}.{module.stem}"
        parts += [f"## `{room}.{module.stem}`", f"::: {name}\n    options: {_NO_HEADING}"]
    return "\n\n".join(parts) + "\n"


_TEXT_ONLY = "{show_root_heading: false, show_root_toc_entry: false, members: false}"
_NO_HEADING = "{show_root_heading: false, show_root_toc_entry: false}"
