"""Viewer: what all pages of a server have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pointmend.geometry.meshes import Mesh

from .jobs import Runner

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Denoiser


@dataclass(frozen=True)
class Shared:
    """
    What all pages of a server share.

    Attributes
    ----------
    paths : scans that every page opens with.
    reference : a mesh to compare with.
    models : names or paths to choose from, the first by default.
    load : gives a model by its name, loaded once.
    runner : does all that takes long.
    """

    paths: Sequence[Path]
    reference: Mesh | None
    models: Sequence[str]
    load: Callable[[str], Denoiser]
    runner: Runner
