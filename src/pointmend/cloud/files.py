"""Room `cloud`: reading and writing any known kind of file, by its suffix."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from pointmend.cloud import e57, kitti, las, npy, pcd, ply, text, vertices
from pointmend.cloud.format import Format, PieceReader, Pieces
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError, InputError, NotInPieces, PointmendError

# Points read and written at a time where a file does not fit into memory.
PIECE_ROWS = 100_000

_BY_SUFFIX: dict[str, Format] = {}


def register(added: Format) -> None:
    """Plug in a format; `read` and `write` know its suffixes from then on."""
    for suffix in added.suffixes:
        other = _BY_SUFFIX.get(suffix, added)
        if other.name != added.name:
            raise InputError(f"suffix {suffix} of {added.name} already belongs to {other.name}")
    _BY_SUFFIX.update(dict.fromkeys(added.suffixes, added))


for _format in (
    ply.FORMAT,
    pcd.FORMAT,
    las.FORMAT,
    e57.FORMAT,
    text.FORMAT,
    npy.NPY,
    npy.NPZ,
    kitti.FORMAT,
    *vertices.FORMATS,
):
    register(_format)


def known_suffixes() -> tuple[str, ...]:
    """Return every suffix that can be read and written, sorted."""
    return tuple(sorted(_BY_SUFFIX))


def read(path: str | os.PathLike[str]) -> PointCloud:
    """
    Read a point cloud; its suffix says which format it is in.

    Raises
    ------
    FileFormatError
        If there is no such file, or it is not what its name or header says.
    """
    source = Path(path)
    chosen = format_of(source)
    with errors_about(source):
        _check_regular(source)
        return chosen.read(source)


@contextmanager
def open_pieces(path: Path) -> Iterator[PieceReader]:
    """
    Open a file to read it in pieces; errors name it.

    Raises
    ------
    NotInPieces
        If the format, or this file of it, can only be read as a whole.
    """
    chosen = format_of(path)
    if chosen.pieces is None:
        raise NotInPieces(f"{path}: {chosen.name} files are read as a whole")
    with contextlib.ExitStack() as stack:
        with errors_about(path):
            _check_regular(path)
            reader = stack.enter_context(chosen.pieces.open(path))
        yield _NamedPieces(path, reader)


@dataclass(frozen=True)
class _NamedPieces:
    """A reader whose errors name its file."""

    path: Path
    reader: PieceReader

    @property
    def count(self) -> int:
        return self.reader.count

    def pieces(self, rows: int) -> Iterator[PointCloud]:
        with errors_about(self.path):
            yield from self.reader.pieces(rows)


@contextmanager
def errors_about(path: Path, verb: str = "read") -> Iterator[None]:
    """Put the path in front of what goes wrong with a file."""
    try:
        yield
    except FileFormatError as error:
        raise error.about(path) from error
    except PointmendError as error:
        raise FileFormatError(str(error)).about(path) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and verb == "read":
            raise FileFormatError("no such file").about(path) from error
        raise FileFormatError(f"cannot be {verb}: {error.strerror}").about(path) from error


def _check_regular(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait for ever
        raise FileFormatError("is not a regular file")


def write(cloud: PointCloud, path: str | os.PathLike[str]) -> None:
    """
    Write a point cloud; the file is complete and checked, or `path` stays as it was.

    The cloud goes to a temporary file in the same folder, which is read back, compared in count
    and bounds, flushed to the disk, and only then renamed to `path`.

    Raises
    ------
    FileFormatError
        If the folder is missing, the place cannot be written, or the format cannot hold the cloud.
    """
    target = Path(path)
    chosen = format_of(target)
    with put_in_place(target) as part:
        chosen.write(cloud, part)
        found = chosen.read(part)
        check_written(Extent().add(cloud), Extent().add(found), chosen, cloud)


def write_pieces(
    how: Pieces, chosen: Format, count: int, pieces: Iterable[PointCloud], part: Path
) -> None:
    """
    Write `count` points piece by piece to a temporary file (`put_in_place`), and check it.

    The first piece is the template of all: their attributes and metadata are its own.
    """
    rest = iter(pieces)
    last = first = next(rest)
    wanted, got = Extent(), Extent()
    with how.create(first, count, part) as writer:
        for piece in chain((first,), rest):
            wanted.add(piece)
            writer.append(piece)
    with how.open(part) as written:
        for last in written.pieces(PIECE_ROWS):
            got.add(last)
    # A piece that was read back knows how finely the file holds coordinates.
    check_written(wanted, got, chosen, last)


def why_not_in_pieces(target: Path) -> str:
    """What to tell about a file that would have to be written in pieces, but cannot be."""
    return (
        f"{target}: {format_of(target).name} cannot be written in pieces, and the cloud does not "
        "fit into memory; choose LAS, LAZ or PLY, or allow more (--max-memory)"
    )


@contextmanager
def put_in_place(target: Path) -> Iterator[Path]:
    """
    Give a temporary file to write to, and rename it to `target` when the block succeeds.

    Whatever happens, `target` is the old file or the new one, never half; and errors name it.
    """
    if target.is_dir():
        raise FileFormatError(f"{target}: is a folder; name a file in it")
    # A link keeps pointing where it did: the file behind it is replaced.
    real = Path(os.path.realpath(target))
    if not real.parent.is_dir():
        raise FileFormatError(f"{target}: folder {real.parent} does not exist; create it first")
    if real.exists() and not real.is_file():
        raise FileFormatError(f"{target}: is not a regular file; choose another name")
    # The suffix stays, because format libraries look at it.
    part = real.parent / f".pointmend-{secrets.token_hex(8)}.part{target.suffix.lower()}"
    try:
        with errors_about(target, "written"):
            _create(part, real)
            yield part
            _flush(part)
            part.replace(real)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    _flush_folder(real.parent)


def format_of(path: Path) -> Format:
    """The format that a path's suffix stands for."""
    if path.is_dir():
        raise FileFormatError(f"{path}: is a folder; name a file in it")
    try:
        return _BY_SUFFIX[path.suffix.lower()]
    except KeyError:
        known = " ".join(known_suffixes())
        raise FileFormatError(
            f"{path}: unknown suffix '{path.suffix}'; known are {known}"
        ) from None


def _create(part: Path, real: Path) -> None:
    """Create `part` with the permissions `real` has, or those any new file would get."""
    if real.exists() and not os.access(real, os.W_OK):
        raise FileFormatError("is write-protected")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    if real.exists():
        part.chmod(stat.S_IMODE(real.stat().st_mode))


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system lets folders be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Extent:
    """Number and bounds (3,) of the points seen so far; NaN where there are none."""

    def __init__(self) -> None:
        self.count = 0
        self.low, self.high = np.full(3, np.nan), np.full(3, np.nan)

    def add(self, cloud: PointCloud) -> Extent:
        """See some more."""
        low, high = cloud.bounds()
        self.count += len(cloud)
        self.low, self.high = np.fmin(self.low, low), np.fmax(self.high, high)
        return self


def check_written(wanted: Extent, got: Extent, chosen: Format, cloud: PointCloud) -> None:
    """
    Compare what was to be written with what reads back: number of points, lowest and highest.

    A file that is not the cloud is not worth replacing an older one.
    """
    if got.count != wanted.count:
        raise FileFormatError(
            f"reads back as {got.count} points instead of {wanted.count}; nothing was replaced"
        )
    allowed = chosen.precision(cloud)
    for corner, found in ((wanted.low, got.low), (wanted.high, got.high)):
        if not np.allclose(found, corner, rtol=0.0, atol=allowed, equal_nan=True):
            raise FileFormatError(
                f"reads back with bounds {found} instead of {corner}; nothing was replaced"
            )
