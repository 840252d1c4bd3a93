"""Viewer: what to type to get the same result without the viewer."""

from __future__ import annotations

import shlex
from pathlib import Path

from pointmend.denoising.settings import Settings


def denoise_line(
    source: str, suffix: str, settings: Settings, model: str, write_displacement: bool
) -> str:
    """
    The `pointmend denoise` line that does what the page does, quoted for a shell.

    Parameters
    ----------
    source : path of the scan, or the name of an upload.
    suffix : of the result, such as ".ply".
    settings : of the run; what has its default value is left out.
    model : a name in the box, or a path.
    """
    usual = Settings()
    target = Path(source).with_suffix("").name + f".denoised{suffix}"
    words = ["pointmend", "denoise", source, str(Path(source).parent / target)]
    if settings.strength != usual.strength:
        words += ["--strength", repr(settings.strength)]
    if settings.steps != usual.steps:
        words += ["--steps", str(settings.steps)]
    if settings.sigma is not None:
        words += ["--sigma", repr(settings.sigma)]
    if settings.outliers is not None:
        words.append("--flag-outliers")
    if settings.spread:
        words.append("--spread")
    if write_displacement:
        words.append("--write-displacement")
    if model != "default":
        words += ["--model", model]
    return shlex.join(words)
