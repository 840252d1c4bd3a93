"""Command line: whatever a file holds, the answer is one line, exit code 2, and nothing written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, write
from pointmend.cloud.files import known_suffixes

Run = Callable[..., tuple[int, str, str]]
BINARY = (".las", ".laz", ".ply", ".pcd", ".e57", ".npy", ".npz", ".bin")


# A text without its end is a text; only the others can be cut.
CASES = [(suffix, content) for suffix in known_suffixes() for content in ("nothing", "noise")]
CASES += [(suffix, "cut") for suffix in BINARY]


@pytest.mark.parametrize("command", ["denoise", "inspect", "convert"])
@pytest.mark.parametrize(("suffix", "content"), CASES)
def test_bad_files_cost_nothing(
    run: Run, tmp_path: Path, model: str, command: str, suffix: str, content: str
) -> None:
    path, target = tmp_path / f"bad{suffix}", tmp_path / f"out{suffix}"
    if content == "nothing":
        path.touch()
    elif content == "noise":
        path.write_bytes(b"\xff" + np.random.default_rng(0).bytes(998))
    else:
        write(PointCloud(np.random.default_rng(0).normal(size=(200, 3))), path)
        path.write_bytes(path.read_bytes()[:-7])
    words = [] if command == "convert" else ["--model", model]
    words = [*words, *([str(target)] if command != "inspect" else [])]
    code, out, err = run(command, path, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"pointmend: {path}: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]
