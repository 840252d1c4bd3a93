from collections.abc import Callable
from pathlib import Path

import pytest

from pointmend.cli.main import main
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.procedural import torus


def test_a_table_of_the_paper_by_one_command(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    write_off: Callable[[Path, Mesh], None],
) -> None:
    write_off(tmp_path / "data" / "PUNet" / "meshes" / "test" / "ring.off", torus(24, 16))
    monkeypatch.setenv("POINTMEND_DATA", str(tmp_path / "data"))
    out = tmp_path / "results"
    words = ["reproduce", "table1", "--out", str(out), "--points", "200", "--levels", "0.01"]
    words += ["--methods", "identity", "pointmend", "--cache", str(tmp_path / "cache")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "pointmend" in said
    assert "IterPFN [paper]" in said
    assert said.splitlines()[-1] == f"report: {out}/table1.html"
    assert "data:image/png" in (out / "table1.html").read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["table1"], "give --data or set POINTMEND_DATA"),
        (["table1", "--data", "absent"], "absent: no such folder"),
        (["table9"], "table9"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POINTMEND_DATA", raising=False)
    assert main(["reproduce", *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert complaint in said[0]
