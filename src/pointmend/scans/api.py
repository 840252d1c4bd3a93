"""Room `scans`: the functions for files that most users need, with the shipped model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.settings import Settings
from pointmend.errors import InputError

from .budget import memory_from, plan_file
from .convert import convert_file
from .marks import Marks
from .pipeline import denoise_file
from .tally import Tally


def denoise_scan(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    denoiser: Denoiser | None = None,
    max_memory: str | None = None,
    write_displacement: bool = False,
    drop_outliers: bool = False,
    overwrite: bool = False,
    **settings: Any,
) -> Tally:
    """
    Denoise a file into another one, attributes and all, as `pointmend denoise` does.

    Parameters
    ----------
    source, target : their suffixes say which formats they have.
    denoiser : by default the shipped model.
    max_memory : such as "4G"; half of the machine's by default.
    write_displacement : add an attribute with how far each point moved.
    drop_outliers : leave out what `outliers=3.0` flags, instead of marking it.
    overwrite : replace `target` if it exists.
    settings : as for `pointmend.denoise`: steps, sigma, strength, max_displacement, outliers, ...

    Returns
    -------
    What was done: points, noise, displacements, and what the target's format cannot hold.
    """
    try:
        chosen = Settings(**settings)
    except TypeError as error:
        raise InputError(f"unknown setting: {error}") from None
    _check_free(Path(target), overwrite)
    marks = Marks(write_displacement, drop_outliers, chosen.outliers is not None)
    budget = plan_file(Path(source), memory_from(max_memory))
    model = denoiser or Denoiser.load("default")
    return denoise_file(model, Path(source), Path(target), chosen, marks, budget)


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    max_memory: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Write a file in another format; returns what that cannot hold, which `strict` refuses."""
    _check_free(Path(target), overwrite)
    budget = plan_file(Path(source), memory_from(max_memory))
    return convert_file(Path(source), Path(target), budget, strict=strict)[1]


def _check_free(target: Path, overwrite: bool) -> None:
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{target} exists; pass overwrite=True to replace it")
