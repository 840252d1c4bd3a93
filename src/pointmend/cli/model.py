"""Command line: loading the model, with the options that every command shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from pointmend.errors import InputError

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Denoiser
    from pointmend.denoising.options import SamplerOptions


Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
InputsOrPair = Annotated[
    tuple[Path, ...],
    tyro.conf.Positional,
    tyro.conf.arg(metavar="IN [OUT] | IN IN IN ...", help_behavior_hint=""),
]
MemorySize = Annotated[
    str | None, tyro.conf.arg(metavar="SIZE", help_behavior_hint="(default: half of all)")
]


@dataclass(frozen=True)
class ModelChoice:
    """Which model runs, and where."""

    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "default"
    """A model in the box, or the path of a .safetensors file with its .json beside it."""
    device: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto"
    """Where to compute: cpu, cuda, ...; auto takes a GPU when there is one."""
    threads: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: all cores)")
    ] = None
    """CPU threads to use."""

    def check(self) -> None:
        """Refuse a number of threads that makes no sense."""
        if self.threads is not None and self.threads < 1:
            raise InputError(f"--threads is {self.threads}; at least 1 is needed")

    def load(self, options: SamplerOptions | None = None) -> Denoiser:
        """Load the model; this is where torch is imported."""
        self.check()
        import torch

        from pointmend.denoising.denoiser import Denoiser

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return Denoiser.load(self.model, self.device, options)
