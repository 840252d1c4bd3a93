import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pointmend import Denoiser, PointCloud, write

Run = Callable[..., tuple[int, str, str]]


def test_json_says_what_the_file_holds(run: Run, scan: Path, model: str, cloud: PointCloud) -> None:
    code, out, err = run("inspect", scan, "--model", model, "--json")
    facts = json.loads(out)
    estimate = Denoiser.load(model).estimate_noise(cloud.positions)
    assert (code, err) == (0, "")
    assert facts["format"] == "PLY"
    assert (facts["points"], facts["invalid"], facts["duplicates"]) == (300, 1, 1)
    assert facts["attributes"] == {
        "red": {"type": "uint8", "columns": 1},
        "intensity": {"type": "float32", "columns": 1},
        "class": {"type": "int32", "columns": 1},
    }
    assert facts["bounds"]["min"] == np.nanmin(cloud.positions, axis=0).tolist()
    assert facts["bounds"]["max"] == np.nanmax(cloud.positions, axis=0).tolist()
    assert (facts["sigma"], facts["spacing"]) == (estimate.sigma, estimate.spacing)
    assert facts["sigma_over_spacing"] == pytest.approx(estimate.sigma / estimate.spacing)
    assert facts["in_trained_range"] is estimate.in_trained_range


def test_summary_reads_well(run: Run, scan: Path, model: str) -> None:
    code, out, err = run("inspect", scan, "--model", model)
    assert (code, err) == (0, "")
    assert "300, 1 not finite, 1 repeat another" in out
    assert "red uint8, intensity float32, class int32" in out
    assert "x the spacing" in out
    assert "what the model was trained on" in out


def test_large_offsets_are_shown_as_finely_as_the_points_lie(
    run: Run, tmp_path: Path, model: str
) -> None:
    grid = np.stack(np.meshgrid(*[np.arange(12) * 0.25] * 2, [0.0]), axis=-1).reshape(-1, 3)
    path = tmp_path / "utm.xyz"
    write(PointCloud(grid + np.array([500_000.0, 5_000_000.0, 1000.0])), path)
    out = run("inspect", path, "--model", model)[1]
    assert "500000.00 to 500002.75" in out
    assert "5000000.00 to 5000002.75" in out


def test_empty_cloud(run: Run, tmp_path: Path, model: str) -> None:
    path = tmp_path / "empty.npy"
    write(PointCloud(np.empty((0, 3))), path)
    code, out, _ = run("inspect", path, "--model", model, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["points"] == 0
    assert facts["bounds"] == {"min": [None] * 3, "max": [None] * 3}
    assert run("inspect", path, "--model", model)[0] == 0


def test_bad_file(run: Run, tmp_path: Path, model: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(b"not numpy")
    code, out, err = run("inspect", path, "--model", model)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"pointmend: {path}: ")


def test_several_files_and_a_picture(run: Run, scan: Path, model: str) -> None:
    other = scan.with_name("other.npy")
    write(PointCloud(np.random.default_rng(0).normal(size=(50, 3))), other)
    facts = json.loads(run("inspect", scan, other, "--model", model, "--json")[1])
    assert [each["points"] for each in facts] == [300, 50]
    picture = scan.with_name("look.png")
    assert run("inspect", scan, "--model", model, "--picture", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, _, err = run("inspect", scan, "--model", model, "--picture", picture)
    assert code == 2
    assert "add --overwrite" in err
    for words, part in (
        ((other, "--picture", "a.png"), "one input"),
        (("--picture", "a.jpg"), "as .png"),
        (("--picture", "nowhere/a.png"), "does not exist"),
    ):
        code, _, err = run("inspect", scan, *words, "--model", model)
        assert (code, part in err) == (2, True)


def test_the_coordinate_system_is_named(run: Run, tmp_path: Path, model: str) -> None:
    laspy = pytest.importorskip("laspy", reason="laspy writes the file")
    header = laspy.LasHeader(version="1.4", point_format=6)
    wkt = 'PROJCS["UTM 12N",AUTHORITY["EPSG","32612"]]\0'
    header.vlrs.append(laspy.VLR("LASF_Projection", 2112, "WKT", wkt.encode()))
    las = laspy.LasData(header)
    las.x, las.y, las.z = np.random.default_rng(0).normal(size=(3, 40))
    las.write(tmp_path / "a.las")
    assert "UTM 12N (EPSG:32612)" in run("inspect", tmp_path / "a.las", "--model", model)[1]
