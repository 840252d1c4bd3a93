"""A viewer that runs, and a browser that looks at it."""

import shutil
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, sync_playwright

from pointmend import Denoiser, PointCloud, Result, write
from pointmend.denoising.algorithm import Progress, Report
from pointmend.denoising.settings import Settings
from pointmend.viewer.jobs import Runner
from pointmend.viewer.server import Viewer
from pointmend.viewer.shared import Shared

Float64 = NDArray[np.float64]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# WebGL on a processor, and nothing that would look for a network.
OPTIONS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser, without a window."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser is installed; looked for {', '.join(NAMES)}")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield started
        started.close()


@lru_cache
def load(model: str) -> Denoiser:
    """A model, loaded once for all tests."""
    return Denoiser.load(model, device="cpu")


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    """A viewer with no scan open."""
    started = Viewer(Shared((), None, ["default"], load, Runner()))
    yield started
    started.stop()


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Runs stand still after the second step until this is called, however slow the browser is."""
    wanted = threading.Event()
    run = Denoiser.run

    def stop_in_the_middle(
        self: Denoiser,
        points: Float64,
        settings: Settings,
        report: Report | None = None,
        ignore: NDArray[np.bool_] | None = None,
    ) -> Result:
        def tell(state: Progress) -> None:
            if report is not None:
                report(state)
            if state.step == 2:
                assert wanted.wait(60)

        return run(self, points, settings, tell, ignore)

    monkeypatch.setattr(Denoiser, "run", stop_in_the_middle)
    return wanted.set


OpenTab = Callable[[], Page]


@pytest.fixture
def open_tab(browser: Browser, viewer: Viewer) -> Iterator[OpenTab]:
    """Opens the viewer's page in a new tab."""
    tabs: list[Page] = []

    def start() -> Page:
        tab = browser.new_page(viewport={"width": 1200, "height": 900})
        tabs.append(tab)
        tab.goto(viewer.address)
        tab.get_by_role("button", name="Choose a scan").wait_for()
        tab.get_by_text("Software WebGL").wait_for()  # comes late, and covers a corner
        tab.locator(".mantine-Notification-closeButton").click()
        return tab

    yield start
    for tab in tabs:
        tab.close()


def sphere(count: int, sigma: float, seed: int = 0) -> Float64:
    """Points (N, 3) spread evenly over a sphere of radius 10, far from the origin, with noise."""
    rng = np.random.default_rng(seed)
    height = 1.0 - 2.0 * (np.arange(count) + 0.5) / count
    angle = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(count)
    ring = np.sqrt(1.0 - height**2)
    points = np.stack((ring * np.cos(angle), ring * np.sin(angle), height), axis=1)
    return 10.0 * (points + sigma * rng.standard_normal(points.shape)) + [5e5, 5e6, 100.0]


@pytest.fixture(scope="session")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small noisy scan with attributes, far from the origin."""
    path = tmp_path_factory.mktemp("scans") / "noisy.ply"
    points = sphere(2000, 0.03)
    labels = np.arange(len(points), dtype=np.int32)
    write(PointCloud(points, {"label": labels}), path)
    return path


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scan without noise."""
    path = tmp_path_factory.mktemp("scans") / "clean.xyz"
    write(PointCloud(sphere(3000, 0.0)), path)
    return path
