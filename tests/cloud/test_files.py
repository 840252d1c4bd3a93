"""Room `cloud`: files are found by suffix, and written whole or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import pointmend.cloud
from pointmend.cloud import files
from pointmend.cloud.files import known_suffixes, read, register, write
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError, InputError

# Formats that keep float64 coordinates and any attribute of any cloud.
SUFFIXES = (".asc", ".csv", ".npy", ".npz", ".pcd", ".ply", ".pts", ".txt", ".xyz")
# Grids and local coordinates, single precision, and mesh vertices, which hold less.
OTHERS = (".bin", ".e57", ".las", ".laz", ".obj", ".off", ".stl")
OLD = PointCloud(np.arange(30.0).reshape(-1, 3))
NEW = PointCloud(np.arange(60.0).reshape(-1, 3) + np.array([5e5, 5e6, 0]))


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what a test registers."""
    monkeypatch.setattr(files, "_BY_SUFFIX", dict(files._BY_SUFFIX))


def only(folder: Path, *names: str) -> bool:
    return sorted(p.name for p in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_by_suffix(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"cloud.old{suffix.upper()}"
    write(OLD, str(path))
    write(NEW, path)
    assert np.array_equal(read(str(path)).positions, NEW.positions)
    assert only(tmp_path, path.name)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("other", SUFFIXES)
def test_from_every_format_to_every_other(tmp_path: Path, suffix: str, other: str) -> None:
    cloud = NEW.with_attribute("label", np.arange(20, dtype=np.uint8))
    write(cloud, tmp_path / f"a{suffix}")
    write(read(tmp_path / f"a{suffix}"), tmp_path / f"b{other}")
    back = read(tmp_path / f"b{other}")
    assert np.array_equal(back.positions, NEW.positions)
    assert back.attributes["label"].tolist() == list(range(20))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("other", [".las", ".laz", ".e57"])
def test_to_grids_and_back(tmp_path: Path, suffix: str, other: str) -> None:
    cloud = NEW.with_attribute("intensity", np.arange(20, dtype=np.uint16))
    write(cloud, tmp_path / f"a{suffix}")
    write(read(tmp_path / f"a{suffix}"), tmp_path / f"b{other}")
    write(read(tmp_path / f"b{other}"), tmp_path / f"c{suffix}")
    back = read(tmp_path / f"c{suffix}")
    assert np.allclose(back.positions, NEW.positions, rtol=0.0, atol=1e-3)
    assert back.attributes["intensity"].tolist() == list(range(20))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [0, 1])
def test_tiny_clouds(tmp_path: Path, suffix: str, count: int) -> None:
    path = tmp_path / f"a{suffix}"
    cloud = PointCloud(np.full((count, 3), np.nan), {"a": np.zeros(count)})
    write(cloud, path)
    back = read(path)
    assert len(back) == count
    assert list(back.attributes) == ["a"]
    assert np.isnan(back.positions).all()


def test_unknown_suffixes_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    assert known_suffixes() == tuple(sorted((*SUFFIXES, *OTHERS)))
    for action in (read, lambda path: write(OLD, path)):
        with pytest.raises(FileFormatError, match=r"'\.foo'; known are \.asc \.bin .* \.xyz$"):
            action(tmp_path / "a.foo")


def test_missing_things_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"a\.ply: no such file$"):
        read(tmp_path / "a.ply")
    with pytest.raises(FileFormatError, match="is a folder"):
        read(tmp_path)
    (tmp_path / "folder.ply").mkdir()
    with pytest.raises(FileFormatError, match="is a folder"):
        read(tmp_path / "folder.ply")
    with pytest.raises(FileFormatError, match="is a folder"):
        write(OLD, tmp_path / "folder.ply")
    with pytest.raises(FileFormatError, match="missing does not exist; create it"):
        write(OLD, tmp_path / "missing" / "a.ply")
    write(OLD, tmp_path / "file.ply")
    with pytest.raises(FileFormatError, match=r"cannot be read|no such file"):
        read(tmp_path / "file.ply" / "a.ply")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_pipes_do_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ply")
    with pytest.raises(FileFormatError, match="not a regular file"):
        read(tmp_path / "pipe.ply")
    with pytest.raises(FileFormatError, match="not a regular file"):
        write(OLD, tmp_path / "pipe.ply")


@pytest.mark.usefixtures("plug")
def test_permission_errors_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> PointCloud:
        raise PermissionError(13, "Permission denied")

    register(Format("sealed", (".sealed",), refuse, lambda cloud, path: None))
    path = tmp_path / "a.sealed"
    path.touch()
    with pytest.raises(FileFormatError, match=r"a\.sealed: cannot be read: Permission denied"):
        read(path)
    with pytest.raises(FileFormatError, match=r"a\.sealed: cannot be written: Permission denied"):
        write(OLD, path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileFormatError, match="write-protected"):
        write(OLD, path)
    assert only(tmp_path, "a.sealed")


@pytest.mark.usefixtures("plug")
def test_a_new_format_plugs_in(tmp_path: Path) -> None:
    def write_pairs(cloud: PointCloud, path: Path) -> None:
        path.write_bytes(cloud.positions.astype("<f4").tobytes())

    def read_pairs(path: Path) -> PointCloud:
        return PointCloud(np.frombuffer(path.read_bytes(), "<f4").reshape(-1, 3))

    coarse = Format("raw", (".raw",), read_pairs, write_pairs, lambda cloud: 1.0)
    register(coarse)
    register(coarse)
    write(NEW, tmp_path / "a.raw")
    assert len(read(tmp_path / "a.raw")) == 20
    assert ".raw" in known_suffixes()
    with pytest.raises(InputError, match=r"\.ply of raw already belongs to PLY"):
        register(Format("raw", (".ply",), read_pairs, write_pairs))


class Crash(BaseException):
    pass


def half_written(cloud: PointCloud, path: Path) -> None:
    path.write_bytes(b"half a fi")
    raise Crash


def full_disk(cloud: PointCloud, path: Path) -> None:
    path.write_bytes(b"half a fi")
    raise OSError(28, "No space left on device")


def loses_a_point(cloud: PointCloud, path: Path) -> None:
    np.save(path, cloud.positions[:-1])


def moves_a_point(cloud: PointCloud, path: Path) -> None:
    np.save(path, cloud.positions + np.eye(1, 3) * 1e-9)


def writes_rubbish(cloud: PointCloud, path: Path) -> None:
    path.write_bytes(b"rubbish")


@pytest.mark.usefixtures("plug")
@pytest.mark.parametrize(
    ("writer", "message"),
    [
        (half_written, None),
        (full_disk, "No space left"),
        (loses_a_point, "reads back as 19 points instead of 20"),
        (moves_a_point, "reads back with bounds"),
        (writes_rubbish, "not a NumPy"),
    ],
)
@pytest.mark.parametrize("existed", [True, False])
def test_a_failed_write_changes_nothing(
    tmp_path: Path, writer: object, message: str | None, existed: bool
) -> None:
    path = tmp_path / "a.npy"
    if existed:
        write(OLD, path)
        before = path.read_bytes()
    sound = files._BY_SUFFIX[".npy"]
    register(Format(sound.name, (".npy",), sound.read, writer))  # type: ignore[arg-type]
    with pytest.raises(FileFormatError if message else Crash, match=message):
        write(NEW, path)
    if existed:
        assert path.read_bytes() == before
    assert only(tmp_path, *(["a.npy"] if existed else []))


def test_a_failed_rename_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ply"
    write(OLD, path)

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(FileFormatError, match="Input/output error"):
        write(NEW, path)
    assert np.array_equal(read(path).positions, OLD.positions)
    assert only(tmp_path, "a.ply")


def test_links_and_permissions_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.ply", tmp_path / "link.ply"
    write(OLD, real)
    usual = tmp_path / "usual"
    usual.touch()
    assert stat.S_IMODE(real.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    real.chmod(0o640)
    link.symlink_to(real)
    write(NEW, link)
    assert link.is_symlink()
    assert len(read(real)) == len(NEW)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_everything_is_flushed_before_and_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_fsync(handle: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        steps.append("fsync folder" if is_folder else "fsync file")
        fsync(handle)

    def note_replace(self: Path, target: Path) -> Path:
        steps.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    write(OLD, tmp_path / "a.ply")
    assert steps == ["fsync file", "replace", "fsync folder"]


CHILD = """
import sys, time
from pathlib import Path
import numpy as np
from pointmend.cloud import files
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud

target, stage = Path(sys.argv[1]), sys.argv[2]
clouds = [PointCloud(np.full((100_000, 3), value)) for value in (1.0, 2.0)]

def pause(*_):
    print("now", flush=True)
    time.sleep(60)

if stage == "writing":
    def half(cloud, path):
        path.write_bytes(b"ply\\nformat")
        pause()
    sound = files._BY_SUFFIX[".ply"]
    files.register(Format(sound.name, (".ply",), sound.read, half))
elif stage == "checking":
    files.check_written = pause
elif stage == "renamed":
    files._flush_folder = pause

print("ready", flush=True)
while True:
    for cloud in clouds:
        files.write(cloud, target)
"""


def killed_child(target: Path, stage: str, wait: float) -> None:
    """Let a child write `target` over and over, and kill it for good in the middle."""
    source = str(Path(pointmend.cloud.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(target), stage],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        if stage != "any":
            assert child.stdout.readline() == "now\n"
        time.sleep(wait)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill like this")
@pytest.mark.parametrize(
    ("stage", "value"), [("writing", 0.0), ("checking", 0.0), ("renamed", 1.0)]
)
def test_killed_at_a_stage(tmp_path: Path, stage: str, value: float) -> None:
    target = tmp_path / "a.ply"
    write(PointCloud(np.zeros((100_000, 3))), target)
    killed_child(target, stage, 0.0)
    assert np.array_equal(read(target).positions, np.full((100_000, 3), value))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill like this")
def test_killed_at_any_time(tmp_path: Path) -> None:
    target = tmp_path / "a.ply"
    write(PointCloud(np.zeros((100_000, 3))), target)
    for wait in (0.003, 0.011, 0.037, 0.083):
        killed_child(target, "any", wait)
        positions = read(target).positions
        assert positions.shape == (100_000, 3)
        assert positions[0, 0] in (0.0, 1.0, 2.0)
        assert (positions == positions[0, 0]).all()
