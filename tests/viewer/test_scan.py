from pathlib import Path

import numpy as np
import pytest

import pointmend
from pointmend import Denoiser, InputError, PointCloud
from pointmend.denoising.settings import Settings
from pointmend.evaluation.noreference import plane_residuals
from pointmend.geometry.meshes import Mesh
from pointmend.scans.budget import Budget
from pointmend.viewer import scan as scan_module
from pointmend.viewer import texts
from pointmend.viewer.picture import save_picture
from pointmend.viewer.saving import save_result
from pointmend.viewer.scan import (
    DISPLACEMENT,
    DISTANCE,
    HEIGHT,
    ORIGINAL,
    ROUGHNESS,
    Outcome,
    Scan,
)


def cleaned(path: Path, settings: Settings | None = None) -> Scan:
    """A scan after a run."""
    scan = Scan.open(path, path.name, str(path))
    settings = settings or Settings(steps=2)
    result = Denoiser.load("default", device="cpu").run(scan.cloud.positions, settings)
    scan.finish(Outcome(result, settings, "default", 1.5))
    return scan


@pytest.fixture
def with_gaps(tmp_path: Path) -> Path:
    """A noisy plane with a colour, and a row that is not finite."""
    rng = np.random.default_rng(0)
    points = np.column_stack((rng.random((600, 2)), 0.02 * rng.standard_normal(600)))
    points[4] = np.nan
    colours = {name: np.full(600, 200, dtype=np.uint8) for name in ("red", "green", "blue")}
    path = tmp_path / "plane.ply"
    pointmend.write(PointCloud(points, colours), path)
    return path


def test_what_points_are_coloured_by(with_gaps: Path) -> None:
    scan = Scan.open(with_gaps, "plane.ply", "plane.ply")
    assert scan.colourings == [ORIGINAL, ROUGHNESS, HEIGHT]
    finite = np.delete(scan.cloud.positions, 4, axis=0)
    assert scan.frame(ORIGINAL, None, after=False).values is None
    height = scan.frame(HEIGHT, None, after=False).values
    assert np.array_equal(height, finite[:, 2] - finite[:, 2].min())  # type: ignore[arg-type]
    rough = scan.frame(ROUGHNESS, None, after=False).values
    assert np.allclose(rough, plane_residuals(finite))  # type: ignore[arg-type]
    floor = Mesh(np.array([[-9.0, -9, -1], [9, -9, -1], [0, 9, -1]]), np.array([[0, 1, 2]]))
    distance = scan.frame(DISTANCE, floor, after=False).values
    assert np.allclose(distance, finite[:, 2] + 1.0)  # type: ignore[arg-type]


def test_a_result_is_measured_on_the_scale_of_the_noisy_scan(with_gaps: Path) -> None:
    scan = cleaned(with_gaps)
    assert scan.colourings[-1] == DISPLACEMENT
    before, after = scan.roughness()
    assert after < 0.5 * before
    early = scan.frame(ROUGHNESS, None, after=False)
    late = scan.frame(ROUGHNESS, None, after=True)
    assert scan.scale(ROUGHNESS, None) == pytest.approx(np.percentile(early.values, 98))  # type: ignore[arg-type]
    half = early.towards(late, 0.5)
    assert np.allclose(half.points, 0.5 * (early.points + late.points))
    assert np.allclose(half.values, 0.5 * (early.values + late.values))  # type: ignore[arg-type, operator]
    assert scan.outcome is not None
    moved = scan.frame(DISPLACEMENT, None, after=True).values
    assert np.array_equal(moved, scan.outcome.result.displacement[scan.rows])  # type: ignore[arg-type]


def test_a_second_run_replaces_what_was_measured(with_gaps: Path) -> None:
    scan = cleaned(with_gaps)
    assert scan.outcome is not None
    first = scan.frame(DISPLACEMENT, None, after=True).values
    result = Denoiser.load("default", device="cpu").denoise(scan.cloud.positions, strength=0.5)
    scan.finish(Outcome(result, Settings(strength=0.5), "default", 1.0))
    second = scan.frame(DISPLACEMENT, None, after=True)
    assert not np.array_equal(second.values, first)  # type: ignore[arg-type]
    assert np.array_equal(second.points, result.points[scan.rows])


def test_points_that_are_nearly_infinite_are_shown(tmp_path: Path) -> None:
    points = np.random.default_rng(0).random((500, 3))
    points[7] = [1e300, -1e300, 1e200]
    pointmend.write(PointCloud(points), tmp_path / "far.ply")
    scan = Scan.open(tmp_path / "far.ply", "far.ply", "far.ply")
    frame = scan.frame(ROUGHNESS, None, after=False)
    assert frame.values is not None
    assert np.isfinite(frame.values).all()
    assert scan.place.radius < 2.0
    usual = np.delete(points, 7, axis=0)
    alike = np.isclose(np.delete(frame.values, 7), plane_residuals(usual), rtol=0.05)
    assert alike.mean() > 0.8


def test_what_does_not_fit_into_memory_is_left_to_the_command_line(
    with_gaps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget(10**10, 4000, streamed=True, memory=10**9)
    monkeypatch.setattr(scan_module, "plan_file", lambda path, memory: budget)
    with pytest.raises(InputError, match="do not fit into memory; pointmend denoise"):
        Scan.open(with_gaps, "a", "a")


def test_statistics_say_what_was_done(with_gaps: Path) -> None:
    scan = cleaned(with_gaps, Settings(steps=1, outliers=3.0))
    assert scan.outcome is not None
    moved = scan.outcome.result.displacement
    said = texts.statistics(scan)
    for number in (
        f"{np.sum(moved > 0)} of 600",
        f"{np.sqrt(np.mean(moved**2)):.3g} RMS",
        f"{moved.max():.3g} at most",
        f"{scan.outcome.result.outlier.sum()} flagged",
        "1.5 s",
    ):
        assert number in said


def test_names_cannot_become_markup(with_gaps: Path) -> None:
    scan = Scan.open(with_gaps, "x", "<img src=x onerror=alert(1)>.ply")
    scan.cloud = scan.cloud.with_attribute("<script>", np.zeros(600))
    assert "<script>" not in texts.facts(scan)
    assert "<img src=x" not in texts.command(scan.source)


@pytest.mark.parametrize("by", [ORIGINAL, ROUGHNESS])
@pytest.mark.parametrize("direction", [(1.0, 1.0, -1.0), (0.0, 0.0, -1.0)])
def test_pictures_show_before_and_after(
    with_gaps: Path, tmp_path: Path, by: str, direction: tuple[float, float, float]
) -> None:
    from PIL import Image

    path = tmp_path / "a.png"
    save_picture(cleaned(with_gaps), by, None, np.array(direction), path)
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("L"))
    assert pixels.shape[1] == 2 * 760
    for half in (pixels[150:450, :760], pixels[150:450, 760:]):
        assert (half < 230).mean() > 0.05


def test_a_result_is_saved_as_the_command_line_does(with_gaps: Path, tmp_path: Path) -> None:
    scan = cleaned(with_gaps, Settings(steps=2, outliers=3.0))
    assert scan.outcome is not None
    ours, theirs = tmp_path / "ours.ply", tmp_path / "theirs.ply"
    assert save_result(scan, scan.outcome, ours, write_displacement=True) == ()
    pointmend.denoise_scan(with_gaps, theirs, steps=2, outliers=3.0, write_displacement=True)
    assert ours.read_bytes() == theirs.read_bytes()
    lost = save_result(scan, scan.outcome, tmp_path / "ours.off", write_displacement=True)
    assert any("displacement" in words for words in lost)
