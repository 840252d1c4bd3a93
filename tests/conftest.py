"""What tests of several packages share."""

import os

# The tests compute little, and more threads only wait for one another. Torch reads this when it is
# first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from pathlib import Path

import pytest

from pointmend.geometry.meshes import Mesh

WriteMesh = Callable[[Path, Mesh], None]


@pytest.fixture(scope="session")
def write_off() -> WriteMesh:
    """Writes a mesh as OFF, with all digits, making folders on the way."""

    def write(path: Path, mesh: Mesh) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ["OFF", f"{len(mesh.vertices)} {len(mesh.faces)} 0"]
        lines += [" ".join(map(repr, vertex)) for vertex in mesh.vertices.tolist()]
        lines += ["3 " + " ".join(map(str, face)) for face in mesh.faces.tolist()]
        path.write_text("\n".join(lines) + "\n")

    return write
