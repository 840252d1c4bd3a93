from pathlib import Path

import numpy as np
import pytest

from pointmend.cli.main import main
from pointmend.cli.train import parse_settings
from pointmend.errors import InputError
from pointmend.training.checkpoint import read_checkpoint
from pointmend.training.config import CONFIGURATIONS
from pointmend.training.trainer import CHECKPOINT

SMALL = [
    "--set",
    *("network.channels=8", "network.hidden=8", "network.layers=1", "network.blocks=1"),
    *("batch=1", "patch_points=80", "mask_points=20"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    ball = np.random.default_rng(0).standard_normal((1500, 3))
    folder = tmp_path / "shapes"
    folder.mkdir()
    np.save(folder / "ball.npy", ball / np.linalg.norm(ball, axis=1, keepdims=True))
    (folder / "broken.off").write_text("OFF\n")
    return folder


def test_from_a_folder_to_a_model_that_denoises(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    words = ["train", str(data), "--out", str(run), "--cache", str(tmp_path / "cache")]
    assert main([*words, "--steps", "2", *SMALL]) == 0
    printed = capsys.readouterr()
    assert "2 patches" in printed.out
    assert "broken.off" in printed.err
    assert list((run / "events").glob("events.out.tfevents.*"))
    assert main([*words, "--steps", "1", "--resume"]) == 0
    assert read_checkpoint(run / CHECKPOINT)[1].step == 3
    cloud = tmp_path / "cloud.npy"
    np.save(cloud, np.random.default_rng(1).random((200, 3)))
    assert main(["denoise", str(cloud), "--model", str(run / "model.safetensors")]) == 0
    assert (tmp_path / "cloud.denoised.npy").exists()


def test_a_run_is_not_overwritten(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / CHECKPOINT).write_bytes(b"precious")
    words = ["train", str(data), "--out", str(tmp_path / "run"), "--steps", "1", *SMALL]
    assert main(words) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert (tmp_path / "run" / CHECKPOINT).read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--steps", "0"], "--steps is 0; at least 1 is needed"),
        (["--threads", "-1"], "--threads is -1; at least 1 is needed"),
        (["--steps", "1", "--set", "batch=0"], "batch, patch_points and mask_points of at least 1"),
        (["--steps", "1", "--set", "learning_rate=fast"], "learning_rate is 'fast'; a number is"),
        (["--steps", "1", "--out", "{data}/ball.npy"], "a file has that name; name another"),
    ],
)
def test_mistakes_are_told_in_one_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    (data / "broken.off").unlink()
    out = [] if "--out" in words else ["--out", str(tmp_path / "run")]
    given = [word.replace("{data}", str(data)) for word in words]
    assert main(["train", str(data), *out, *given]) == 2
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_settings_are_applied_and_checked() -> None:
    base = CONFIGURATIONS["default"]
    words = ("learning_rate=0.01", "network.hidden=32", "target=nearest")
    changed = base.changed(parse_settings(words))
    assert (changed.learning_rate, changed.network.hidden, changed.target) == (0.01, 32, "nearest")
    with pytest.raises(InputError, match="KEY=VALUE"):
        parse_settings(("hidden",))
    with pytest.raises(InputError, match="depth"):
        base.changed(parse_settings(("network.depth=3",)))
