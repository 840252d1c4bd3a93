"""Files that are there completely or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes, shared: bool = False) -> None:
    """
    Write a file beside its target, sync it, and rename it into place.

    Parameters
    ----------
    shared : whether other processes may write the same file at the same time; the last one wins.
    """
    own = f".{secrets.token_hex(4)}" if shared else ""
    temporary = path.with_name(f"{path.name}{own}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
