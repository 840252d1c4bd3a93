import shlex
from pathlib import Path

import pytest

from pointmend.cli.denoise import Denoise
from pointmend.cli.parsing import parse
from pointmend.denoising.settings import Settings
from pointmend.viewer.command_line import denoise_line


@pytest.mark.parametrize("source", ["scan.ply", "my scans/it's (1).laz", "/data/a.b.e57", "; rm x"])
@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(steps=7, strength=0.35, sigma=1e-05, outliers=3.0, spread=True),
        Settings(sigma=0.0, strength=0.0),
    ],
)
@pytest.mark.parametrize(("model", "displacement"), [("default", False), ("a b.safetensors", True)])
def test_the_line_asks_for_the_same(
    source: str, settings: Settings, model: str, displacement: bool
) -> None:
    words = shlex.split(denoise_line(source, ".ply", settings, model, displacement))
    assert words[0] == "pointmend"
    command = parse(words[1:])
    assert isinstance(command, Denoise)
    assert command.settings() == settings
    assert command.choice.model == model
    assert command.write_displacement == displacement
    assert command.paths[0] == Path(source)
    assert command.paths[1].parent == Path(source).parent
    assert command.paths[1].name.endswith(".denoised.ply")


def test_what_is_usual_is_left_out() -> None:
    line = denoise_line("dir/scan.laz", ".laz", Settings(), "default", False)
    assert line == "pointmend denoise dir/scan.laz dir/scan.denoised.laz"
