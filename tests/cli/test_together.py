import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pointmend import PointCloud, read, write
from pointmend.cli.denoise import Denoise
from pointmend.cli.together import make_plan
from pointmend.network.weights import weights_file

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fields(tmp_path: Path) -> list[Path]:
    """Two neighbouring fields."""
    rng = np.random.default_rng(0)
    paths = []
    for number, name in enumerate(("a.ply", "b.ply")):
        positions = rng.uniform(0.0, 20.0, (500, 3))
        positions[:, 0] += 20.0 * number
        positions[:, 2] = 0.1 * rng.normal(size=500)
        write(PointCloud(positions, {"number": np.arange(500, dtype=np.int32)}), tmp_path / name)
        paths.append(tmp_path / name)
    return paths


def test_files_become_one_cloud_and_the_second_run_says_that_nothing_is_left(
    run: Run, fields: list[Path], model: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    words = ["denoise", *fields, "--out", out, "--together", "--model", model, "--steps", 1]
    code, said, err = run(*words, "--even-if-clean")
    assert code == 0
    assert err == "2 files, 1,000 points in about 1 tile\n"
    assert "2 of 2 files, 1,000 points" in said
    written = read(out / "a.ply")
    assert np.array_equal(written.attributes["number"], np.arange(500))
    assert not np.array_equal(written.positions, read(fields[0]).positions)
    assert run(*words, "--even-if-clean") == (
        0,
        "nothing to do: 2 written before, and nothing has changed since\n",
        "",
    )
    code, said, err = run(*words, "--even-if-clean", "--json")
    facts = json.loads(said)
    assert [fact["points"] for fact in facts] == [500, 500]
    assert facts[0]["sigma"] == facts[1]["sigma"] > 0
    # Other settings are another run, which does not replace what is there without being told.
    code, _, err = run(*words)
    assert code == 2
    assert "exists; add --overwrite" in err
    (out / "a.ply").write_bytes(b"precious")
    code, _, err = run(*words, "--even-if-clean")
    assert (code, (out / "a.ply").read_bytes()) == (2, b"precious")
    assert run(*words, "--even-if-clean", "--overwrite")[0] == 0
    assert np.array_equal(read(out / "a.ply").positions, written.positions)


def test_memory_and_threads_are_part_of_the_plan(fields: list[Path], tmp_path: Path) -> None:
    pairs = [(path, tmp_path / f"{path.stem}.clean.ply") for path in fields]
    weights = weights_file("default")
    usual = make_plan(Denoise(tuple(fields), cluster="local"), pairs, weights)
    assert (usual.threads, usual.options.tile_points) == (1, 150_000)
    small = make_plan(Denoise(tuple(fields), cluster="local", max_memory="405M"), pairs, weights)
    assert small.options.tile_points == 150_000  # all of it fits
    assert usual.settings.local_noise is False
    local = make_plan(Denoise(tuple(fields), cluster="local", noise="local"), pairs, weights)
    assert local.settings.local_noise is True
    assert usual.digest != local.digest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cluster", "local:none"], "local:N with at least one worker"),
        (["--together", "--model", "absent.safetensors"], "cannot read the model"),
        (["--together", "--threads", "0"], "--threads is 0"),
        (["--together", "--noise", "loud"], "choose one of 'shared', 'local'"),
        (["--together", "--device", "nowhere"], "unknown device 'nowhere'"),
    ],
)
def test_mistakes_are_told_in_one_line(
    run: Run, fields: list[Path], tmp_path: Path, words: list[str], message: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    code, _, err = run("denoise", *fields, "--out", out, "--quiet", *words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
    assert not list(out.glob("*.ply"))


def test_a_missing_extra_is_told_of(
    run: Run, fields: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("denoise", *fields, "--out", tmp_path, "--cluster", "local:2")
    assert code == 2
    assert "pip install 'pointmend[cluster]'" in err


def test_what_ctrl_c_cuts_short_goes_on_where_it_was(tmp_path: Path, model: str) -> None:
    rng = np.random.default_rng(0)
    # A strip, so that tiles are large against what is around them.
    positions = rng.uniform(0.0, 6.0, (26_000, 3)) * [100.0, 1.0, 1.0]
    positions[:, 2] = 0.1 * rng.normal(size=26_000)
    sources = [tmp_path / "a.ply", tmp_path / "b.ply"]
    write(PointCloud(positions[:13_000]), sources[0])
    write(PointCloud(positions[13_000:]), sources[1])
    for name in ("cut", "straight"):
        (tmp_path / name).mkdir()
    words = [sys.executable, "-m", "pointmend", "denoise", *map(str, sources), "--threads", "1"]
    words += ["--model", model, "--steps", "1", "--max-memory", "490M", "--out"]
    cut = subprocess.Popen(
        [*words, str(tmp_path / "cut"), "--cluster", "local:2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120.0
    while not any(
        '"denoising"' in path.read_text() for path in tmp_path.glob("cut/.*/finished.jsonl")
    ):
        assert cut.poll() is None, "it was over before it could be cut"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(cut.pid, signal.SIGINT)  # as a terminal does
    _, err = cut.communicate(timeout=60)
    assert cut.returncode == 130, err
    lines = err.splitlines()
    assert lines[0] == "2 files, 26,000 points in about 7 tiles"
    assert lines[1].startswith("dashboard: http://127.0.0.1:")
    assert "the same command goes on from there" in lines[2]
    assert lines[3] == "pointmend: interrupted"
    assert len(lines) == 4
    assert not list(tmp_path.glob("cut/*.ply"))
    # Who carries out a plan is no part of it: here one process finishes what workers began.
    for name in ("cut", "straight"):
        done = subprocess.run([*words, str(tmp_path / name), "--together"], timeout=120)
        assert done.returncode == 0
    for source in sources:
        finished = (tmp_path / "cut" / source.name).read_bytes()
        assert finished == (tmp_path / "straight" / source.name).read_bytes()
    [noted] = tmp_path.glob("cut/.*/finished.jsonl")
    tiles = [
        entry
        for entry in map(json.loads, noted.read_text().splitlines())
        if entry["stage"] == "denoising"
    ]
    assert len(tiles) == len({entry["number"] for entry in tiles}) == 7
