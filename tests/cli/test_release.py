from collections.abc import Callable
from pathlib import Path

import pytest

from pointmend.cli.main import main
from pointmend.denoising.denoiser import Denoiser
from pointmend.geometry.meshes import Mesh
from pointmend.geometry.procedural import torus
from pointmend.training.trainer import CHECKPOINT


def test_a_checkpoint_is_released_with_its_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write_off: Callable[[Path, Mesh], None]
) -> None:
    mesh = torus(around=60, across=24)
    for folder in ("shapes", "val"):
        write_off(tmp_path / "data" / folder / f"{folder}.off", mesh)
    common = ["--cache", str(tmp_path / "cache")]
    settings = ["network.channels=8", "network.hidden=8", "network.layers=1", "network.blocks=1"]
    run = str(tmp_path / "run")
    train = ["train", str(tmp_path / "data"), "--out", run, "--steps", "1", *common]
    assert main([*train, "--set", *settings, "batch=1", "patch_points=80", "mask_points=20"]) == 0
    capsys.readouterr()
    lost = ["release", f"{run}/{CHECKPOINT}", str(tmp_path / "absent" / "mine"), "--data", "any"]
    assert main(lost) == 2  # before any work is done
    assert "absent does not exist; create it first" in capsys.readouterr().err
    words = ["release", f"{run}/{CHECKPOINT}", str(tmp_path / "mine")]
    data = ["--data", str(tmp_path / "data"), "--points", "1000", "--made", "2"]
    assert main([*words, *data, *common]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 4
    assert table[1].split()[:2] == ["1000", "1.0%"]
    card = Denoiser.load(tmp_path / "mine.safetensors", device="cpu").card
    assert card.calibration is not None
    assert len(card.facts["validation"]) == 3
