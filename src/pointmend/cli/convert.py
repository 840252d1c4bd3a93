"""Command line: `pointmend convert`, from one file format to another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from .batch import run_batch
from .model import Flag, InputsOrPair, MemorySize
from .paths import check_output, pair_up
from .report import print_table


@dataclass(frozen=True)
class Convert:
    """
    Write point clouds in other formats, and say what those cannot hold.

    Two paths are an input and its output. For more, --out "laz/{stem}.laz" names the results, and
    with that their format.
    """

    paths: InputsOrPair
    """Clouds; a suffix says which format a file is in. Patterns like *.laz are fine."""
    out: Annotated[
        str | None,
        tyro.conf.arg(metavar="PATH", help_behavior_hint="(default: IN.converted.* beside IN)"),
    ] = None
    """Where results go: a file, a folder, or a pattern such as converted/{stem}.ply."""
    overwrite: Flag = False
    """Replace outputs that exist, even if they are inputs."""
    strict: Flag = False
    """Fail, and write nothing, where the new format cannot hold everything."""
    max_memory: MemorySize = None
    """Memory to use, such as 4G; larger LAS and PLY files are converted in pieces."""
    json: Flag = False
    """Print the result as one JSON object, or a list of them for several inputs."""
    quiet: Flag = False
    """No summary."""

    def run(self) -> None:
        """Read, write, and say what was lost; one bad file does not stop the others."""
        pairs = pair_up(self.paths, self.out, "converted")
        for source, target in pairs:
            check_output(source, target, self.overwrite)
        run_batch(pairs, self._convert, self.json)

    def _convert(self, source: Path, target: Path) -> dict[str, Any]:
        from pointmend.scans.budget import memory_from, plan_file
        from pointmend.scans.convert import convert_file

        budget = plan_file(source, memory_from(self.max_memory))
        points, lost = convert_file(source, target, budget, strict=self.strict)
        if not self.json and not self.quiet:
            rows = {"points": f"{points:,}", "not kept": ", ".join(lost) or "nothing"}
            print_table(rows | {"written": str(target)})
        return {"input": str(source), "output": str(target), "points": points, "lost": list(lost)}
