import csv
import json

from pointmend.evaluation.tables import (
    WRITERS,
    Row,
    Table,
    shown,
    to_csv,
    to_json,
    to_latex,
    to_markdown,
)

TABLE = Table(
    "Methods",
    ["10k 1 % CD", "10k 1 % P2M"],
    [
        Row("jet", {"10k 1 % CD": 2.8, "10k 1 % P2M": 7.0123}, group="PUNet"),
        Row("pointmend", {"10k 1 % CD": 2.09, "10k 1 % P2M": float("nan")}, group="PUNet"),
        Row("the paper", {"10k 1 % CD": 2.05}, "paper", "PUNet"),
    ],
    ["a note"],
)


def test_numbers_have_three_digits_as_in_the_paper() -> None:
    values = (2.094, 10.44, 123.4, 0.514, 0.0812, float("nan"), None)
    assert [shown(v) for v in values] == ["2.09", "10.4", "123", "0.51", "0.081", "-", "-"]


def test_markdown_marks_what_is_the_papers() -> None:
    lines = to_markdown(TABLE).splitlines()
    assert lines[2] == "| group | method | 10k 1 % CD | 10k 1 % P2M |"
    assert lines[4] == "| PUNet | jet | 2.80 | 7.01 |"
    assert lines[5] == "| PUNet | pointmend | 2.09 | - |"
    assert lines[6] == "| PUNet | the paper [paper] | 2.05 | - |"
    assert lines[-1] == "a note"


def test_a_table_without_groups_has_no_column_for_them() -> None:
    assert Table("t", ["x"], [Row("a", {"x": 1.0})]).heads == ["method", "x"]


def test_csv_and_json_keep_full_precision_and_gaps() -> None:
    rows = list(csv.DictReader(to_csv(TABLE).splitlines()))
    assert rows[0]["10k 1 % P2M"] == "7.0123"
    assert rows[1]["10k 1 % P2M"] == ""
    assert rows[2]["source"] == "paper"
    parsed = json.loads(to_json(TABLE))
    assert parsed["rows"][0]["values"]["10k 1 % P2M"] == 7.0123
    assert "10k 1 % P2M" not in parsed["rows"][1]["values"]


def test_latex_escapes_and_marks_the_best_measured_number() -> None:
    text = to_latex(TABLE)
    assert r"10k 1 \% CD" in text
    assert r"\textbf{2.09}" in text
    assert r"\textbf{7.01}" in text
    assert r"\textbf{2.05}" not in text
    assert text.count(r"\\") == 4


def test_every_format_ends_with_a_line_end() -> None:
    assert all(write(TABLE).endswith("\n") for write in WRITERS.values())
