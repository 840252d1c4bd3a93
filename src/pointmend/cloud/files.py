"""Room `cloud`: reading and writing any known kind of file, by its suffix."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

import numpy as np

from pointmend.cloud import npy, ply, text
from pointmend.cloud.format import Format
from pointmend.cloud.point_cloud import PointCloud
from pointmend.errors import FileFormatError, InputError, PointmendError

_BY_SUFFIX: dict[str, Format] = {}


def register(added: Format) -> None:
    """Plug in a format; `read` and `write` know its suffixes from then on."""
    for suffix in added.suffixes:
        other = _BY_SUFFIX.get(suffix, added)
        if other.name != added.name:
            raise InputError(f"suffix {suffix} of {added.name} already belongs to {other.name}")
    _BY_SUFFIX.update(dict.fromkeys(added.suffixes, added))


for _format in (ply.FORMAT, text.FORMAT, npy.NPY, npy.NPZ):
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
    if source.is_dir():
        raise FileFormatError(f"{source}: is a folder; name a file in it")
    chosen = _format_of(source)
    try:
        mode = source.stat().st_mode
        if not stat.S_ISREG(mode):  # a pipe would wait for ever
            raise FileFormatError("is not a regular file")
        return chosen.read(source)
    except PointmendError as error:
        raise FileFormatError(f"{source}: {error}") from error
    except FileNotFoundError as error:
        raise FileFormatError(f"{source}: no such file") from error
    except OSError as error:
        raise FileFormatError(f"{source}: cannot be read: {error.strerror}") from error


def write(cloud: PointCloud, path: str | os.PathLike[str]) -> None:
    """
    Write a point cloud; the file is complete and checked, or `path` stays as it was.

    The cloud goes to a temporary file in the same folder, which is flushed to the disk, read back,
    compared in count and bounds, and only then renamed to `path`.

    Raises
    ------
    FileFormatError
        If the folder is missing, the place cannot be written, or the format cannot hold the cloud.
    """
    target = Path(path)
    if target.is_dir():
        raise FileFormatError(f"{target}: is a folder; name a file in it")
    chosen = _format_of(target)
    # A link keeps pointing where it did: the file behind it is replaced.
    real = Path(os.path.realpath(target))
    if not real.parent.is_dir():
        raise FileFormatError(f"{target}: folder {real.parent} does not exist; create it first")
    if real.exists() and not real.is_file():
        raise FileFormatError(f"{target}: is not a regular file; choose another name")
    # The suffix stays, because format libraries look at it.
    part = real.parent / f".pointmend-{secrets.token_hex(8)}.part{target.suffix.lower()}"
    try:
        _create(part, real)
        chosen.write(cloud, part)
        _flush(part)
        _verify(chosen, cloud, part)
        part.replace(real)
    except PointmendError as error:
        raise FileFormatError(f"{target}: {error}") from error
    except OSError as error:
        raise FileFormatError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    _flush_folder(real.parent)


def _format_of(path: Path) -> Format:
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


def _verify(chosen: Format, cloud: PointCloud, part: Path) -> None:
    """Read `part` back; a file that is not `cloud` is not worth replacing an older one."""
    found = chosen.read(part)
    if len(found) != len(cloud):
        raise FileFormatError(
            f"reads back as {len(found)} points instead of {len(cloud)}; nothing was replaced"
        )
    allowed = chosen.precision(cloud)
    for wanted, got in zip(cloud.bounds(), found.bounds()):
        if not np.allclose(got, wanted, rtol=0.0, atol=allowed, equal_nan=True):
            raise FileFormatError(
                f"reads back with bounds {got} instead of {wanted}; nothing was replaced"
            )
