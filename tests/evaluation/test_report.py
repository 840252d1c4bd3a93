from pathlib import Path

import pytest
from PIL import Image

from pointmend.errors import InputError
from pointmend.evaluation.plots import Curve, line_plot
from pointmend.evaluation.report import html_report
from pointmend.evaluation.tables import Row, Table


def test_a_report_holds_everything_and_asks_for_nothing(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    line_plot([Curve("10k", [1, 2, 30], [3.0, 2.0, 1.0])], tmp_path / "b.svg", "L", "P2M")
    table = Table("T <1>", ["x"], [Row("a & b", {"x": 1.0}), Row("c", {"x": 2.0}, "paper")])
    pictures = [("first", tmp_path / "a.png"), ("second", tmp_path / "b.svg")]
    page = html_report("All", [table], pictures, ["a note"])
    assert "T &lt;1&gt;" in page
    assert "a &amp; b" in page
    assert "c [paper]" in page
    assert "a note" in page
    assert page.count("data:image/png;base64,") == 1
    assert page.count("data:image/svg+xml;base64,") == 1
    assert "http://" not in page
    assert "https://" not in page


def test_a_report_takes_pictures_only(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PNG and SVG"):
        html_report("All", [], [("x", tmp_path / "a.pdf")])


def test_the_same_plot_is_the_same_file_and_names_its_curves(tmp_path: Path) -> None:
    curves = [Curve("10k 1 %", [0.0, 1.0], [2.0, 3.0])]
    line_plot(curves, tmp_path / "a.svg", "eta", "P2M")
    text = (tmp_path / "a.svg").read_text()
    assert text.startswith("<?xml")
    assert "<dc:date>" not in text
