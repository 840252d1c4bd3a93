"""Command line: `pointmend view`, a local page to look at scans and clean them."""

from __future__ import annotations

import signal
import threading
import webbrowser
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pointmend.errors import InputError

from .model import Flag, ModelChoice
from .paths import expand

if TYPE_CHECKING:
    from pointmend.denoising.denoiser import Denoiser


@dataclass(frozen=True)
class View:
    """Open a page in the browser, on this computer only: see scans, clean them, save them."""

    paths: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[IN ...]", help_behavior_hint=""),
    ] = ()
    """Scans to open; more can be dropped on the page."""
    reference: Annotated[
        Path | None, tyro.conf.arg(metavar="MESH", help_behavior_hint="(default: none)")
    ] = None
    """The true surface (OFF, OBJ, PLY, STL), to colour points by their distance to it."""
    port: Annotated[
        int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: any free one)")
    ] = None
    """Where the page is served, always on 127.0.0.1."""
    no_browser: Flag = False
    """Print the address only."""
    choice: Annotated[ModelChoice, tyro.conf.arg(name="")] = field(default_factory=ModelChoice)

    def run(self) -> None:
        """Serve the page until Ctrl-C."""
        from pointmend.cloud.files import errors_about, format_of

        paths = expand(self.paths) if self.paths else []
        for path in paths:
            format_of(path)
            with errors_about(path):
                path.stat()
        try:
            from pointmend.viewer.server import Viewer
        except ModuleNotFoundError as error:
            if error.name != "viser":
                raise
            raise InputError(
                "the viewer needs viser; install it with: pip install 'pointmend[view]'"
            ) from None
        from pointmend.geometry.meshes import read_mesh
        from pointmend.network.weights import shipped_models
        from pointmend.viewer.jobs import Runner
        from pointmend.viewer.shared import Shared

        @lru_cache(maxsize=2)
        def load(model: str) -> Denoiser:
            return replace(self.choice, model=model).load()

        reference = None if self.reference is None else read_mesh(self.reference)
        load(self.choice.model)  # a model that is not there is an error now, not in the page
        others = [name for name in shipped_models() if name != self.choice.model]
        shared = Shared(paths, reference, [self.choice.model, *others], load, Runner())
        viewer = Viewer(shared, self.port)
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            print(f"pointmend view: {viewer.address}", flush=True)
            print("Ctrl-C ends it.", flush=True)
            if not self.no_browser:
                webbrowser.open(viewer.address)
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
        finally:
            viewer.stop()


def _interrupt(number: int, frame: Any) -> None:
    """End as with Ctrl-C when the system asks for it, so that uploads are removed."""
    raise KeyboardInterrupt
