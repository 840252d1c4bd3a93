import json
import math

import pytest

from pointmend.cli.report import coordinate, noise, print_json, print_table, seconds


def test_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table({"a": "1", "long": "2"})
    assert capsys.readouterr().out == "a     1\nlong  2\n"


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": math.nan, "b": [1.5, math.inf], "c": {"d": (-math.inf, "x", True, 3)}})
    found = json.loads(capsys.readouterr().out)
    assert found == {"a": None, "b": [1.5, None], "c": {"d": [None, "x", True, 3]}}


@pytest.mark.parametrize(
    ("value", "spacing", "text"),
    [
        (5_000_000.123456, 0.25, "5000000.12"),
        (5_000_000.123456, 0.012, "5000000.123"),
        (123456.7, 300.0, "123457"),
        (1e-7, 2e-8, "0.000000100"),
        (0.125, 0.0, "0.125"),
        (math.nan, 1.0, "none"),
    ],
)
def test_coordinates_are_as_fine_as_the_spacing(value: float, spacing: float, text: str) -> None:
    assert coordinate(value, spacing) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "0.012 s"), (9.96, "10 s"), (59.6, "60 s"), (135.9, "2 min 15 s")]
)
def test_durations(value: float, text: str) -> None:
    assert seconds(value) == text


def test_noise_in_both_units() -> None:
    assert noise(0.015, 0.02) == "0.015 (0.75 x the spacing)"
    assert noise(0.0, 0.0) == "0"
