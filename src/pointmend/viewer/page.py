"""Viewer: one page, in one browser tab, with scans that no other tab sees."""

from __future__ import annotations

import re
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import viser

from pointmend.denoising.settings import Settings
from pointmend.errors import PointmendError
from pointmend.evaluation.example import EXAMPLE
from pointmend.geometry.meshes import read_mesh

from . import texts
from .command_line import denoise_line
from .controls import NOTHING_OPEN, build_controls, put
from .jobs import Cancelled, Job
from .live import LiveFrames
from .picture import save_picture
from .saving import save_result
from .scan import DISTANCE, Outcome, Scan
from .shared import Shared
from .stage import Look, Stage
from .uploads import Uploads

if TYPE_CHECKING:
    from pointmend.denoising.algorithm import Progress
    from pointmend.denoising.denoiser import Denoiser

# Larger files take a while to read, which the page says.
SLOW_BYTES = 20_000_000


class Page:
    """What one tab has opened, and what its controls do."""

    def __init__(self, client: viser.ClientHandle, shared: Shared) -> None:
        self._client = client
        self._shared = shared
        self._uploads = Uploads()
        self._stage = Stage(client)
        self._scans: dict[str, Scan] = {}
        self._reference = shared.reference
        self._jobs: list[Job] = []
        self._running: tuple[Scan, Job] | None = None
        self._closed = False
        # Clicks come in threads of their own: one changes what is open, one draws.
        self._opening = threading.RLock()
        self._drawing = threading.RLock()
        self._outdated = threading.Event()
        self.controls = build_controls(client.gui, shared.models)
        self._connect()

    def begin(self) -> None:
        """Open what every page opens with."""
        for path in self._shared.paths:
            self._carefully(partial(self.open, path, str(path)))

    def close(self) -> None:
        """Forget everything: the tab is gone."""
        self._closed = True
        for job in self._jobs:
            job.cancel()
        self._uploads.close()

    def _connect(self) -> None:
        """Tie the controls to what they do."""
        ui = self.controls

        def on(widget: Any, action: Callable[[], None]) -> None:
            """Call `action` when the user, not the page itself, presses or changes something."""

            def react(event: viser.GuiEvent[Any]) -> None:
                if event.client is not None:
                    self._carefully(action)

            listen = getattr(widget, "on_click", None) or widget.on_update
            listen(react)

        ui.upload.on_upload(lambda _: self._carefully(self._open_upload))
        ui.reference.on_upload(lambda _: self._carefully(self._open_reference))
        on(ui.open_path, lambda: self.open(Path(ui.path.value).expanduser(), ui.path.value))
        on(ui.example, lambda: self.open(EXAMPLE, EXAMPLE.name))
        on(ui.close, self._close_scan)
        on(ui.scans, self._refresh)
        on(ui.run, self._run)
        on(ui.cancel, self._cancel)
        on(ui.toggle, self._toggle)
        on(ui.side_by_side, self._place_side_by_side)
        on(ui.all_in_view, lambda: self._stage.look_at_all(self._side_by_side))
        on(ui.save, self._save)
        on(ui.picture, self._save_picture)
        for widget in (ui.blend, ui.colour, ui.size):
            on(widget, self._draw)
        told = (ui.strength, ui.steps, ui.sigma, ui.outliers, ui.spread, ui.model, ui.suffix)
        for changed in (*told, ui.displacement):
            on(changed, self._tell_command)

    def _carefully(self, action: Callable[[], None]) -> None:
        """Do something, and say in the page what went wrong."""
        try:
            action()
        except Exception as error:
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Show an error as one line, without the folder that uploads are kept in."""
        if self._closed:
            return
        if isinstance(error, PointmendError):
            folder = re.escape(str(self._uploads.folder)) + r"[\\/]\d+[\\/]"
            message = re.sub(folder, "", " ".join(str(error).splitlines()))
        elif isinstance(error, MemoryError):
            message = "not enough memory for this scan"
        else:
            traceback.print_exception(error)
            message = "this should not have happened; the terminal says more"
        self._client.add_notification("That did not work", message, color="red")

    @contextmanager
    def _saying(self, doing: str, wanted: bool) -> Iterator[None]:
        """Tell what is being done while it is done."""
        if not wanted:
            yield
            return
        told = self._client.add_notification(doing, "", loading=True, with_close_button=False)
        try:
            yield
        finally:
            told.remove()

    @property
    def _scan(self) -> Scan | None:
        return self._scans.get(self.controls.scans.value)

    @property
    def _side_by_side(self) -> bool:
        scan = self._scan
        return self.controls.side_by_side.value and scan is not None and scan.outcome is not None

    # What is open

    def open(self, path: Path, source: str) -> None:
        """Add a scan to the list, show it, and have its noise estimated."""
        with self._opening:
            name = path.name
            while name in self._scans:
                name += " again"
            with self._saying(f"Opening {name}", wanted=_size(path) > SLOW_BYTES):
                scan = Scan.open(path, name, source)
                self._scans[name] = scan
                self._list_scans(name)
        self._submit(Job(lambda job: self._estimate(scan), lambda before: None, self._complain))

    def _open_upload(self) -> None:
        sent = self.controls.upload.value
        name, content, sent.content = sent.name, sent.content, b""
        path = self._uploads.keep(name, content)
        self.open(path, path.name)

    def _open_reference(self) -> None:
        sent = self.controls.reference.value
        name, content, sent.content = sent.name, sent.content, b""
        self._reference = read_mesh(self._uploads.keep(name, content))
        for scan in self._scans.values():
            scan.forget(DISTANCE)
        self._refresh()
        put(self.controls.colour, DISTANCE)
        self._draw()

    def _close_scan(self) -> None:
        with self._opening:
            scan = self._scan
            if scan is None:
                return
            if self._running is not None and self._running[0] is scan:
                self._running[1].cancel()
            del self._scans[scan.name]
            self._list_scans(next(iter(self._scans), NOTHING_OPEN))

    def _list_scans(self, chosen: str) -> None:
        """Show the list with one of it chosen."""
        self.controls.scans.options = tuple(self._scans) or (NOTHING_OPEN,)
        put(self.controls.scans, chosen)
        self._refresh()

    # What is seen

    def _refresh(self) -> None:
        """Make all controls and the stage agree with the chosen scan."""
        ui, scan = self.controls, self._scan
        ui.of_scan.visible = scan is not None
        ui.example.visible = scan is None
        ui.welcome.content = texts.welcome(first=scan is None)
        if self._running is None:
            ui.status.content = ""
            ui.busy(running=False, finished=scan is not None and scan.outcome is not None)
        if scan is None:
            self._stage.clear()
            return
        ui.facts.content = texts.facts(scan)
        ui.statistics.content = texts.statistics(scan)
        ui.of_result.visible = scan.outcome is not None
        ui.save.disabled = scan.outcome is None
        choices = scan.colourings + ([DISTANCE] if self._reference is not None else [])
        if ui.colour.options != tuple(choices):
            before = ui.colour.value
            ui.colour.options = tuple(choices)
            # What the scan came with is what its owner knows; otherwise show where it is rough.
            put(ui.colour, before if before in choices else choices[0])
        suffix = Path(scan.source).suffix.lower()
        if suffix in ui.suffix.options and scan.outcome is None:
            put(ui.suffix, suffix)
        self._tell_command()
        self._draw()

    def _draw(self) -> None:
        """Show the chosen scan; of many wishes that arrive while drawing, only the last counts."""
        self._outdated.set()
        with self._drawing:
            scan = self._scan
            if not self._outdated.is_set() or scan is None or self._closed:
                return
            self._outdated.clear()
            by, ui = self.controls.colour.value, self.controls
            before = scan.frame(by, self._reference, after=False)
            after = scan.frame(by, self._reference, after=True) if scan.outcome else before
            top = scan.scale(by, self._reference)
            ui.legend.content = texts.legend(by, top)
            look = Look(top, ui.size.value, self._side_by_side, ui.blend.value)
            self._stage.show(scan, before, after, look)

    def _toggle(self) -> None:
        blend = self.controls.blend
        put(blend, 0.0 if blend.value > 0.5 else 1.0)
        self._draw()

    def _place_side_by_side(self) -> None:
        self._stage.look_at_all(self._side_by_side)
        self._draw()

    def _tell_command(self) -> None:
        """Say which command line does the same."""
        ui, scan = self.controls, self._scan
        if scan is None:
            return
        try:
            settings = ui.settings()
        except PointmendError as error:  # a number is being typed
            ui.command.content = texts.note(str(error), "careful")
            return
        chosen = (ui.suffix.value, settings, ui.model.value, ui.displacement.value)
        ui.command.content = texts.command(denoise_line(scan.source, *chosen))

    # What takes long

    def _submit(self, job: Job) -> None:
        self._jobs = [each for each in self._jobs if not each.finished(0.0)] + [job]
        self._shared.runner.submit(job)

    def _denoiser(self, model: str, scan: Scan) -> Denoiser:
        denoiser = self._shared.load(model)
        options = replace(denoiser.options, tile_points=scan.tile_points)
        return replace(denoiser, options=options)

    def _estimate(self, scan: Scan) -> None:
        if self._scans.get(scan.name) is not scan:  # closed in the meantime
            return
        denoiser = self._denoiser(self.controls.model.value, scan)
        scan.estimate = denoiser.estimate_noise(scan.cloud.positions)
        if scan is self._scan and not self._closed:
            self.controls.facts.content = texts.facts(scan)

    def _run(self) -> None:
        """Start a run of the chosen scan."""
        with self._opening:
            scan = self._scan
            if scan is None or self._running is not None:
                return
            settings, model = self.controls.settings(), self.controls.model.value
            job = Job(
                lambda job: self._denoise(scan, settings, model, job), self._wait, self._give_up
            )
            self._running = scan, job
        self.controls.busy(running=True)
        self.controls.status.content = texts.status("loading the model")
        self._submit(job)

    def _wait(self, before: int) -> None:
        if not self._closed:
            others = "another job" if before == 1 else f"{before} other jobs"
            self.controls.status.content = texts.status(f"waiting for {others} to finish")

    def _cancel(self) -> None:
        if self._running is not None:
            self._running[1].cancel()
            self.controls.status.content = texts.status("cancelling ...")

    def _denoise(self, scan: Scan, settings: Settings, model: str, job: Job) -> None:
        """Run, showing each step (in the thread of the runner)."""
        denoiser = self._denoiser(model, scan)
        self.controls.status.content = texts.status("looking at the scan")
        live, start = LiveFrames(scan), perf_counter()

        def report(state: Progress) -> None:
            job.check()
            self._tell_progress(scan, state)
            if live.take(state):
                self._show_step(scan, live)

        result = denoiser.run(scan.cloud.positions, settings, report)
        job.check()
        scan.finish(Outcome(result, settings, model, perf_counter() - start))
        self._running = None
        if scan is self._scan:
            put(self.controls.blend, 1.0)
        self._refresh()

    def _tell_progress(self, scan: Scan, state: Progress) -> None:
        doing = f"step {min(state.step + 1, state.steps)} of {state.steps}"
        if state.regions > 1:
            doing = f"tile {state.region + 1} of {state.regions}, {doing}"
        share = (state.region + state.done / max(1, state.total)) / state.regions
        put(self.controls.progress, min(100.0, 100.0 * share))
        about = "" if scan is self._scan else f"{scan.name}: "
        self.controls.status.content = texts.status(about + doing)

    def _show_step(self, scan: Scan, live: LiveFrames) -> None:
        """Show where the points are in the middle of a run."""
        if scan is not self._scan:
            live.skip()
            return
        with self._drawing:
            by, reference = self.controls.colour.value, self._reference
            before, now = scan.frame(by, reference, after=False), live.frame(by, reference)
            look = Look(scan.scale(by, reference), self.controls.size.value)
            self._stage.show(scan, before, now, look)

    def _give_up(self, error: Exception) -> None:
        """A run has ended without a result."""
        self._running = None
        if self._closed:
            return
        self.controls.busy(running=False)
        self.controls.status.content = ""
        if isinstance(error, Cancelled):
            self.controls.status.content = texts.status("cancelled; nothing was changed")
        else:
            self._complain(error)
        self._draw()

    # What is taken away

    def _save(self) -> None:
        """Send the result as a file, with all attributes."""
        ui, scan = self.controls, self._scan
        if scan is None or scan.outcome is None:
            return
        path = self._uploads.room_for(f"{Path(scan.source).stem}.denoised{ui.suffix.value}")
        lost = save_result(scan, scan.outcome, path, ui.displacement.value)
        self._send(path)
        if lost:
            said = f"{path.name} has no place for {', '.join(lost)}"
            self._client.add_notification("Saved, but not all of it", said, color="yellow")

    def _save_picture(self) -> None:
        scan = self._scan
        if scan is None:
            return
        path = self._uploads.room_for(f"{Path(scan.source).stem}.png")
        by = self.controls.colour.value
        save_picture(scan, by, self._reference, self._stage.direction, path)
        self._send(path)

    def _send(self, path: Path) -> None:
        """Have the browser download a file, and remove it here."""
        content = path.read_bytes()
        path.unlink()
        self._client.send_file_download(path.name, content, save_immediately=True)


def _size(path: Path) -> int:
    """Bytes of a file; 0 if there is none, which reading it will tell."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
