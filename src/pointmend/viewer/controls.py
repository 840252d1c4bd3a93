"""Viewer: the controls of a page, from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import viser

from pointmend.cloud.files import known_suffixes
from pointmend.denoising.settings import Settings
from pointmend.errors import InputError
from pointmend.geometry.outliers import FACTOR

from . import texts
from .scan import ORIGINAL

NOTHING_OPEN = "none yet"
_MESHES = "The true surface, to colour points by their distance to it: OFF, OBJ, PLY or STL"


@dataclass(frozen=True)
class Controls:
    """The widgets a page reads and changes."""

    welcome: viser.GuiHtmlHandle
    upload: viser.GuiUploadButtonHandle
    example: viser.GuiButtonHandle
    path: viser.GuiTextHandle
    open_path: viser.GuiButtonHandle
    of_scan: viser.GuiFolderHandle
    scans: viser.GuiDropdownHandle[str]
    facts: viser.GuiHtmlHandle
    close: viser.GuiButtonHandle
    run: viser.GuiButtonHandle
    cancel: viser.GuiButtonHandle
    progress: Any  # viser has no public name for its type
    status: viser.GuiHtmlHandle
    statistics: viser.GuiHtmlHandle
    strength: viser.GuiSliderHandle[float]
    steps: viser.GuiSliderHandle[int]
    sigma: viser.GuiTextHandle
    outliers: viser.GuiCheckboxHandle
    spread: viser.GuiCheckboxHandle
    model: viser.GuiDropdownHandle[str]
    of_result: viser.GuiFolderHandle
    blend: viser.GuiSliderHandle[float]
    toggle: viser.GuiButtonHandle
    side_by_side: viser.GuiCheckboxHandle
    colour: viser.GuiDropdownHandle[str]
    legend: viser.GuiHtmlHandle
    size: viser.GuiSliderHandle[float]
    all_in_view: viser.GuiButtonHandle
    reference: viser.GuiUploadButtonHandle
    suffix: viser.GuiDropdownHandle[str]
    displacement: viser.GuiCheckboxHandle
    save: viser.GuiButtonHandle
    picture: viser.GuiButtonHandle
    command: viser.GuiHtmlHandle

    def settings(self) -> Settings:
        """What the user has chosen about a run."""
        return Settings(
            steps=self.steps.value,
            sigma=_number("noise level", self.sigma.value),
            strength=round(self.strength.value, 6),
            outliers=FACTOR if self.outliers.value else None,
            spread=self.spread.value,
        )

    def busy(self, running: bool, finished: bool = False) -> None:
        """Offer to run or to cancel; a finished run leaves its bar behind."""
        self.run.visible, self.cancel.visible = not running, running
        self.progress.visible, self.progress.animated = running or finished, running
        put(self.progress, 100.0 if finished else 0.0)


def put(widget: Any, value: Any) -> None:
    """Change a control's value; type checkers take viser's values for read-only."""
    widget.value = value


def build_controls(gui: viser.GuiApi, models: Sequence[str]) -> Controls:
    """Lay out a page's panel; `models` are offered, the first one is chosen."""
    with gui.add_folder("Open"):
        welcome = gui.add_html(texts.welcome(first=True))
        upload = gui.add_upload_button("Choose a scan", icon=viser.Icon.UPLOAD)
        example = gui.add_button("Try the example", icon=viser.Icon.SPARKLES, color="gray")
        with gui.add_folder("By its path", expand_by_default=False):
            path = gui.add_text("Path", "", hint="Of a file on this computer, of any size")
            open_path = gui.add_button("Open", icon=viser.Icon.FOLDER_OPEN, color="gray")
    of_scan = gui.add_folder(None, visible=False)
    with of_scan:
        with gui.add_folder("Scan"):
            scans = gui.add_dropdown("Shown", [NOTHING_OPEN])
            facts = gui.add_html("")
            close = gui.add_button("Close this scan", icon=viser.Icon.X, color="gray")
        with gui.add_folder("Clean"):
            run = gui.add_button("Denoise", icon=viser.Icon.WAND)
            cancel = gui.add_button("Cancel", icon=viser.Icon.PLAYER_STOP, color="red")
            progress = gui.add_progress_bar(0.0, animated=True)
            status = gui.add_html("")
            statistics = gui.add_html("")
            with gui.add_folder("Options", expand_by_default=False):
                strength = gui.add_slider(
                    "Strength", 0.0, 1.0, 0.05, 1.0, hint="Share of the way to the surface to go"
                )
                steps = gui.add_slider("Steps", 1, 20, 1, 5, hint="Each takes equally long")
                sigma = gui.add_text(
                    "Noise level", "", hint="In the scan's units; empty: as estimated"
                )
                outliers = gui.add_checkbox(
                    "Flag outliers", False, hint="Mark isolated points, and do not move them"
                )
                spread = gui.add_checkbox(
                    "Spread evenly", False, hint="Let points slide along the surface, too"
                )
                model = gui.add_dropdown("Model", list(models))
        with gui.add_folder("View"):
            of_result = gui.add_folder(None, visible=False)
            with of_result:
                blend = gui.add_slider(
                    "Blend", 0.0, 1.0, 0.01, 1.0, marks=((0.0, "before"), (1.0, "after"))
                )
                toggle = gui.add_button("Before / after", icon=viser.Icon.SWITCH_HORIZONTAL)
                side_by_side = gui.add_checkbox("Side by side", False)
            colour = gui.add_dropdown("Colour by", [ORIGINAL])
            legend = gui.add_html("")
            size = gui.add_slider("Point size", 0.2, 3.0, 0.1, 1.0)
            all_in_view = gui.add_button(
                "All in view", icon=viser.Icon.ARROWS_MAXIMIZE, color="gray"
            )
            with gui.add_folder("Compare with a mesh", expand_by_default=False):
                reference = gui.add_upload_button(
                    "Choose a mesh", icon=viser.Icon.TRIANGLE, color="gray", hint=_MESHES
                )
        with gui.add_folder("Save"):
            suffix = gui.add_dropdown("Format", known_suffixes())
            displacement = gui.add_checkbox(
                "With displacement", False, hint="Adds an attribute: how far each point was moved"
            )
            save = gui.add_button("Save the result", icon=viser.Icon.DOWNLOAD, disabled=True)
            picture = gui.add_button("Save a picture", icon=viser.Icon.PHOTO, color="gray")
            command = gui.add_html("")
    controls = Controls(
        welcome=welcome,
        upload=upload,
        example=example,
        path=path,
        open_path=open_path,
        of_scan=of_scan,
        scans=scans,
        facts=facts,
        close=close,
        run=run,
        cancel=cancel,
        progress=progress,
        status=status,
        statistics=statistics,
        strength=strength,
        steps=steps,
        sigma=sigma,
        outliers=outliers,
        spread=spread,
        model=model,
        of_result=of_result,
        blend=blend,
        toggle=toggle,
        side_by_side=side_by_side,
        colour=colour,
        legend=legend,
        size=size,
        all_in_view=all_in_view,
        reference=reference,
        suffix=suffix,
        displacement=displacement,
        save=save,
        picture=picture,
        command=command,
    )
    controls.busy(running=False)
    return controls


def _number(name: str, text: str) -> float | None:
    """A number a user has typed; None for nothing."""
    if not text.strip():
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(f"the {name} is {text!r}; give a number or leave it empty") from None
