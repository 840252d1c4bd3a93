import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from pointmend.cli.main import main
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.procedural import box, torus


@pytest.fixture
def meshes(tmp_path: Path, write_off: Callable[[Path, Mesh], None]) -> Path:
    write_off(tmp_path / "meshes" / "ring.off", torus(24, 16))
    write_off(tmp_path / "meshes" / "box.off", box(4))
    return tmp_path / "meshes"


def test_methods_are_measured_on_any_folder_of_meshes(
    meshes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    words = ["evaluate", str(meshes), "--methods", "identity", "oracle", "--points", "200"]
    words += ["--levels", "0.02", "--metrics", "rms", "worsened", "--pattern", "uniform"]
    words += ["--out", str(out), "--cache", str(tmp_path / "cache")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "oracle projection" in said
    assert said.splitlines()[-1] == f"report: {out}/evaluate-meshes.html"
    rows = list(csv.DictReader((out / "evaluate-meshes.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == ["noisy input", "oracle projection"]
    noisy, oracle = (float(row["0.2k 2 % rms"]) for row in rows)
    assert oracle < 1e-9 < 0.001 < noisy < 0.02
    for suffix in ("md", "json", "tex", "html"):
        assert (out / f"evaluate-meshes.{suffix}").is_file()


def test_every_shape_can_be_shown(
    meshes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    words = ["evaluate", str(meshes), "--methods", "identity", "jet", "--points", "300"]
    words += ["--levels", "0.02", "--metrics", "p2m", "--by-shape"]
    words += ["--out", str(out), "--cache", str(tmp_path / "cache")]
    assert main(words) == 0
    assert "Shape by shape" in capsys.readouterr().out
    means, shapes = (
        {
            (row["group"], row["method"]): float(row["0.3k 2 % P2M"])
            for row in csv.DictReader((out / f"{name}.csv").read_text().splitlines())
        }
        for name in ("evaluate-meshes", "evaluate-meshes-2")
    )
    assert {shape for shape, _ in shapes} == {"ring", "box"}
    for (_, method), mean in means.items():
        assert shapes["ring", method] + shapes["box", method] == pytest.approx(2.0 * mean)
    assert (out / "meshes-0-3k-2.png").is_file()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--methods", "nonsense"], "unknown method 'nonsense'"),
        (["--threads", "0"], "--threads is 0; at least 1 is needed"),
        (["--shapes", "0"], "--shapes is 0; at least 1 is needed"),
        (["--points", "0"], "--points is 0; at least 1 is needed"),
        (["--metrics", "beauty"], "unknown metric 'beauty'"),
        (["--benchmark", "PCNet"], "no test meshes of PCNet"),
        (["--methods", "sbd"], "SBD's published weights are not there"),
    ],
)
def test_mistakes_are_one_line(
    meshes: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(meshes), *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert complaint in said[0]
