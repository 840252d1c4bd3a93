"""Make the picture of the viewer for the README: `python examples/make_screenshot.py`."""

import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from pointmend import Denoiser
from pointmend.evaluation.example import EXAMPLE
from pointmend.viewer.jobs import Runner
from pointmend.viewer.server import Viewer
from pointmend.viewer.shared import Shared

TARGET = Path(__file__).resolve().parent.parent / "docs" / "viewer.png"
WIDTH, HEIGHT = 1440, 900


def clean_the_example(tab: Page) -> None:
    """Do what a user does, until there is something to see."""
    expect.set_options(timeout=120_000)
    tab.get_by_role("button", name="Denoise").click()
    expect(tab.get_by_role("cell", name="moved points")).to_be_visible()
    tab.get_by_label("Side by side").click()
    tab.get_by_label("Colour by", exact=True).click()
    tab.get_by_role("option", name="roughness", exact=True).click()
    # A browser without a graphics card says so; that is no part of the page.
    for close in tab.locator(".mantine-Notification-closeButton").all():
        close.click()
    tab.mouse.move(10, 10)
    tab.wait_for_timeout(4000)


def main() -> None:
    """Start a viewer and a browser, clean the example, and write what is seen."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no browser is installed; chromium will do")
    denoiser = Denoiser.load("default")
    viewer = Viewer(Shared([EXAMPLE], None, ["default"], lambda model: denoiser, Runner()))
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=program, args=options)
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(viewer.address)
        clean_the_example(tab)
        shot = Image.open(BytesIO(tab.screenshot())).convert("RGB")
        browser.close()
    viewer.stop()
    shot.quantize(256, dither=Image.Dither.NONE).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
