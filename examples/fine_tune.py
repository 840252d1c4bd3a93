"""
Fine-tune the model in the box on three shapes: `python examples/fine_tune.py RUN`.

The same from the command line: `pointmend train shapes/ --out RUN --init default --cooldown
--steps 20 --set learning_rate=1e-4`. Twenty steps only show the way; a real run takes thousands.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from pointmend import Denoiser
from pointmend.geometry.meshes import poisson_disk
from pointmend.geometry.procedural import gear, rounded_box, torus
from pointmend.training.config import CONFIGURATIONS
from pointmend.training.session import Plan, Session
from pointmend.training.trainer import Limits

SHAPES = {"gear": gear(), "rounded_box": rounded_box(), "torus": torus()}
POINTS = 4000


def write_shapes(folder: Path) -> None:
    """Clean clouds of three shapes; meshes (OFF, OBJ, PLY, STL) would do as well."""
    folder.mkdir()
    for name, mesh in SHAPES.items():
        np.save(folder / f"{name}.npy", poisson_disk(mesh, POINTS, np.random.default_rng(0)))


def main(run: Path) -> None:
    """Train a few steps from the shipped weights, and load what came out."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "shapes"
        write_shapes(data)
        plan = Plan(
            data=data,
            run=run,
            # Gentler than from scratch: what the model knows already is not to be forgotten.
            config=replace(CONFIGURATIONS["default"], learning_rate=1e-4, warmup=5, batch=2),
            limits=Limits(steps=20, cooldown=True),
            cache=Path(folder) / "cache",
            init="default",
            validate_every=0.0,
        )
        session = Session(plan, print)
        session.run(lambda report: print(f"step {report.step}: loss {report.loss:.3g}"))
        model = session.write_model(shapes=1)  # averaged weights, calibrated noise estimate
    print(f"written: {model}, patches seen: {Denoiser.load(model).card.facts['patches']}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "fine-tuned"))
