import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pointmend import PointCloud, read, write
from pointmend.cli.demo import write_demo
from pointmend.evaluation import example
from pointmend.geometry.triangles import points_to_mesh

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def small_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PointCloud:
    """The shipped example with a twentieth of its points."""
    cloud = read(example.EXAMPLE)[::20]
    write(cloud, tmp_path / "example.ply")
    monkeypatch.setattr(example, "EXAMPLE", tmp_path / "example.ply")
    return cloud


def test_demo_measures_and_writes(
    run: Run, tmp_path: Path, model: str, small_example: PointCloud
) -> None:
    folder = tmp_path / "a" / "b"
    code, out, err = run("demo", "--out", folder, "--model", model, "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert facts["true_sigma"] == 0.015
    # Three axes of noise, of which the surface sees one.
    assert facts["rms_before"] == pytest.approx(0.015, rel=0.1)
    assert facts["improvement"] == pytest.approx(facts["rms_before"] / facts["rms_after"])
    noisy, denoised = read(folder / "noisy.ply"), read(folder / "denoised.ply")
    np.testing.assert_array_equal(noisy.positions, small_example.positions)
    assert not np.array_equal(denoised.positions, noisy.positions)
    np.testing.assert_array_equal(denoised.attributes["red"], small_example.attributes["red"])
    with Image.open(folder / "before-after.png") as picture:
        assert picture.format == "PNG"


def test_demo_tells_how_much_closer(tmp_path: Path, small_example: PointCloud) -> None:
    surface = example.true_surface()
    closest = points_to_mesh(small_example.positions, surface).closest
    halfway = 0.5 * (closest + small_example.positions)
    before, after = write_demo(small_example, halfway, tmp_path)
    assert before / after == pytest.approx(2.0, rel=0.02)


def test_folder_that_cannot_be_made(run: Run, tmp_path: Path, model: str) -> None:
    (tmp_path / "file").touch()
    code, out, err = run("demo", "--out", tmp_path / "file", "--model", model)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "file: a file has that name; name another with --out" in err
