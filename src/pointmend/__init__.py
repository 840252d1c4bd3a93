"""
Point-cloud denoising with a score-based diffusion model.

The public API, nothing else: `denoise`, `estimate_noise` and `Denoiser` for arrays; `denoise_scan`,
`convert`, `read` and `write` for files; `PointCloud`; `load_model`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pointmend.errors import FileFormatError, InputError, PointmendError

if TYPE_CHECKING:
    from pointmend.cloud.files import read, write
    from pointmend.cloud.point_cloud import PointCloud
    from pointmend.denoising.api import denoise, estimate_noise
    from pointmend.denoising.denoiser import Denoiser, NoiseEstimate, Result
    from pointmend.denoising.options import SamplerOptions
    from pointmend.network.weights import load_model
    from pointmend.scans.api import convert, denoise_scan

__version__ = "0.1.0"

__all__ = [
    "Denoiser",
    "FileFormatError",
    "InputError",
    "NoiseEstimate",
    "PointCloud",
    "PointmendError",
    "Result",
    "SamplerOptions",
    "convert",
    "denoise",
    "denoise_scan",
    "estimate_noise",
    "load_model",
    "read",
    "write",
]

# Importing torch takes seconds; `pointmend --help` and reading a file must not wait for it.
_HOMES = {
    "Denoiser": "pointmend.denoising.denoiser",
    "NoiseEstimate": "pointmend.denoising.denoiser",
    "Result": "pointmend.denoising.denoiser",
    "SamplerOptions": "pointmend.denoising.options",
    "PointCloud": "pointmend.cloud.point_cloud",
    "convert": "pointmend.scans.api",
    "denoise": "pointmend.denoising.api",
    "denoise_scan": "pointmend.scans.api",
    "estimate_noise": "pointmend.denoising.api",
    "load_model": "pointmend.network.weights",
    "read": "pointmend.cloud.files",
    "write": "pointmend.cloud.files",
}


def __getattr__(name: str) -> Any:
    """Import the rooms of the house when somebody enters them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pointmend' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
