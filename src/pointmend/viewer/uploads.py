"""Viewer: uploaded files, in a private folder that lives as long as its browser tab."""

from __future__ import annotations

import re
import shutil
import tempfile
from itertools import count
from pathlib import Path, PurePosixPath, PureWindowsPath

from pointmend.errors import FileFormatError

# A browser sends a file through memory; larger ones are opened by their path.
UPLOAD_LIMIT = 500_000_000

# What file systems allow for a name.
_LONGEST_NAME = 200


class Uploads:
    """The files one tab has sent; nobody else can read them, and `close` removes them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointmend-view-"))
        self._numbers = count(1)

    def keep(self, name: str, content: bytes) -> Path:
        """
        Write an upload to the folder, under its own name.

        Raises
        ------
        FileFormatError
            If it is too large.
        """
        plain = plain_name(name)
        if len(content) > UPLOAD_LIMIT:
            raise FileFormatError(too_large(plain, len(content)))
        # One folder each: two files of one name may be uploaded.
        place = self.folder / str(next(self._numbers))
        place.mkdir()
        path = place / plain
        path.write_bytes(content)
        return path

    def room_for(self, name: str) -> Path:
        """A path of that name in a new folder, for a file that is to be downloaded."""
        place = self.folder / str(next(self._numbers))
        place.mkdir()
        return place / plain_name(name)

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)


def plain_name(name: str) -> str:
    """A file name without folders and without anything a file system or a terminal dislikes."""
    last = PureWindowsPath(PurePosixPath(name).name).name
    cleaned = re.sub(r"[^\w .,()+=@#%&-]", "_", last).strip(" .") or "scan"
    stem, dot, suffix = cleaned.rpartition(".")
    return (stem[:_LONGEST_NAME] + dot + suffix[-20:]) if dot else cleaned[:_LONGEST_NAME]


def too_large(name: str, size: int) -> str:
    """What to tell about a file beyond the limit."""
    return (
        f"{name}: {size / 1e6:,.0f} MB are more than the {UPLOAD_LIMIT / 1e6:,.0f} MB that can be "
        "uploaded; open it by its path"
    )
