"""The scripts of examples/ run as they stand and say what they promise."""

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def main_of(name: str) -> Callable[..., None]:
    """The function `main` of a script."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[..., None] = module.main
    return main


def numbers_after(word: str, text: str) -> list[float]:
    """The first number of every line that begins with a word."""
    return [float(found) for found in re.findall(rf"^{word}\D*([\d.]+)", text, re.MULTILINE)]


def test_denoise_array(capsys: pytest.CaptureFixture[str]) -> None:
    main_of("denoise_array")()
    said = capsys.readouterr().out
    (before,), (after,) = numbers_after("before", said), numbers_after("after", said)
    assert after < 0.5 * before
    assert numbers_after("noise", said)[0] == pytest.approx(0.02, rel=0.2)


def test_compare_strengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_of("compare_strengths")(tmp_path / "strengths.png")
    said = capsys.readouterr().out
    distances = numbers_after(r"strength [\d.]+: RMS distance", said)
    assert distances == sorted(distances, reverse=True)
    assert distances[2] < 0.5 * distances[0]
    with Image.open(tmp_path / "strengths.png") as picture:
        assert picture.width == 3 * 330


def test_custom_denoiser(capsys: pytest.CaptureFixture[str]) -> None:
    main_of("custom_denoiser")()
    said = capsys.readouterr().out
    assert "promises kept" in said
    (noisy,), (ours,) = numbers_after("noisy input", said), numbers_after("pointmend", said)
    (theirs,) = numbers_after("neighbour mean", said)
    assert ours < theirs < noisy


def test_fine_tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_of("fine_tune")(tmp_path / "run")
    assert "patches seen: 40" in capsys.readouterr().out
    assert (tmp_path / "run" / "model.safetensors").is_file()
    assert (tmp_path / "run" / "model.json").is_file()
