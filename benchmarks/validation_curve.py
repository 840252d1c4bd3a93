"""
What training has brought so far: validation against patches seen and CPU hours.

    python -m benchmarks.validation_curve DATA RUN [RUN ...] [--picture curve.svg]

Each RUN is a checkpoint of `pointmend train`; the trunk's earlier ones are in git (`git show
REVISION:training/trunk/checkpoint.safetensors`, with its .json). The averaged weights denoise the
same clouds as they are, without a cool-down, with points spread and with the noise known, so that
all points of the curve compare. Prints P2M x 1e5 (in brackets its half from points to faces) as
Markdown, and draws it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.geometry.sample_cache import default_cache
from pointmend.network.weights import ModelCard, load_model
from pointmend.training.library import open_library
from pointmend.training.release import averaged_weights
from pointmend.training.validation import LEVELS, summarise, validate, validation_shapes

POINTS = 10_000

# Places nearer than this share of the axis to the one before are not labelled with their hours.
APART = 0.04


@dataclass(frozen=True)
class Place:
    """A checkpoint on the curve: what it took, and P2M x 1e5 at each level."""

    patches: int
    cpu_hours: float
    p2m: tuple[float, ...]


def draw(places: list[Place], path: Path) -> None:
    """P2M against patches, relative to the first place, with CPU hours along the top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    seen = [place.patches for place in places]
    for column, level in enumerate(LEVELS):
        share = [place.p2m[column] / places[0].p2m[column] for place in places]
        axes.plot(seen, share, marker="o", markersize=4, label=f"{level:.0%} noise")
    axes.set_xlabel("patches seen")
    axes.set_ylabel("P2M, of the first checkpoint's")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    hours = axes.twiny()
    hours.set_xlim(axes.get_xlim())
    named = [places[0]]
    for place in places[1:]:
        if place.patches - named[-1].patches > APART * seen[-1]:
            named.append(place)
    labels = [f"{place.cpu_hours:.1f}" for place in named]
    hours.set_xticks([place.patches for place in named], labels, fontsize=7)
    hours.set_xlabel("CPU hours")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Validate every checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=4, help="take every so many-th shape")
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sources = open_library(arguments.data, print).validation[:: arguments.every]
    shapes = validation_shapes(sources, POINTS, arguments.cache)
    print("| patches | CPU hours | " + " | ".join(f"{level:.0%}" for level in LEVELS) + " |")
    places = []
    # Who is told the noise is told only what a calibration stands for; here it is the truth.
    calibration = load_model()[1].calibration
    for run in arguments.runs:
        network, facts = averaged_weights(run)
        denoiser = Denoiser(network, ModelCard(network.config, calibration), torch.device("cpu"))
        scores = validate(denoiser, shapes, processes=arguments.processes, known=True, spread=True)
        rows = summarise(scores)
        p2m = tuple(row["p2m"] for row in rows)
        places.append(Place(facts["patches"], facts["cpu_hours"], p2m))
        cells = " | ".join(f"{row['p2m']:.2f} ({row['to_surface']:.2f})" for row in rows)
        print(f"| {facts['patches']:,} | {facts['cpu_hours']:.2f} | {cells} |", flush=True)
    if arguments.picture is not None:
        draw(sorted(places, key=lambda place: place.patches), arguments.picture)


if __name__ == "__main__":
    main()
