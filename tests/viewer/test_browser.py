"""The viewer in a real browser: what a user does, and what they see."""

import re
import shlex
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

import pointmend
from pointmend.cli.parsing import parse
from pointmend.cli.report import noise, number
from pointmend.errors import PointmendError
from pointmend.geometry.meshes import Mesh
from pointmend.viewer import texts, uploads
from pointmend.viewer.server import Viewer

OpenTab = Callable[[], Page]
GoOn = Callable[[], None]
WriteMesh = Callable[[Path, Mesh], None]

# Collects what a run tells while it goes on.
WATCH = """() => {
  window.seen = { steps: [], shares: [] };
  new MutationObserver(() => {
    const step = document.body.innerText.match(/step (\\d+) of (\\d+)/);
    if (step) window.seen.steps.push(step[0]);
    const bar = document.querySelector("[role=progressbar]");
    if (bar) window.seen.shares.push(Number(bar.getAttribute("aria-valuenow")));
  }).observe(document.body, { subtree: true, childList: true, characterData: true,
                              attributes: true });
}"""


@pytest.fixture(autouse=True)
def _patient() -> None:
    """The machine may be busy, and draws without a graphics card."""
    expect.set_options(timeout=60_000)


def upload(tab: Page, path: Path) -> None:
    """Choose a file as a user does, and wait until its noise is known."""
    tab.locator("input[type=file]").first.set_input_files(path)
    expect(tab.get_by_text(path.name).first).to_be_visible()


def upload_and_wait(tab: Page, path: Path) -> None:
    upload(tab, path)
    expect(tab.get_by_role("cell", name="spacing", exact=True)).to_be_visible()


def canvas(tab: Page) -> NDArray[np.int16]:
    """What is drawn, (height, width, 3), once it stands still."""
    before = None
    for _ in range(60):
        shot = tab.screenshot(clip={"x": 0, "y": 200, "width": 800, "height": 680})
        now = np.asarray(Image.open(BytesIO(shot)).convert("RGB"), dtype=np.int16)
        if before is not None and np.array_equal(before, now):
            return now
        before = now
        time.sleep(0.3)
    raise AssertionError("the picture does not come to rest")


def changed(one: NDArray[np.int16], other: NDArray[np.int16]) -> float:
    """The share of pixels that differ clearly."""
    return float(np.mean(np.abs(one - other).max(axis=2) > 24))


def choose(tab: Page, label: str, option: str) -> None:
    """Pick an entry of a list."""
    tab.get_by_label(label, exact=True).click()
    tab.get_by_role("option", name=option, exact=True).click()


def field(tab: Page, label: str) -> Locator:
    """The input in the row of a label; for a slider, its number."""
    row = tab.locator("label", has_text=re.compile(f"^{label}$"))
    return row.locator("xpath=ancestor::div[contains(@class, 'Flex')][1]").locator("input").last


def denoise(tab: Page) -> None:
    """Run, and wait for the statistics."""
    tab.get_by_role("button", name="Denoise").click()
    expect(tab.get_by_role("cell", name="moved points")).to_be_visible()


def test_a_first_time_user_cleans_a_scan(
    open_tab: OpenTab, noisy: Path, tmp_path: Path, go_on: GoOn
) -> None:
    tab = open_tab()
    empty = canvas(tab)
    upload_and_wait(tab, noisy)

    positions = pointmend.read(noisy).positions
    estimate = pointmend.estimate_noise(positions)
    expect(tab.get_by_text(noise(estimate.sigma, estimate.spacing))).to_be_visible()
    before = canvas(tab)
    assert changed(empty, before) > 0.1

    tab.evaluate(WATCH)
    tab.get_by_role("button", name="Denoise").click()
    expect(tab.get_by_text("step 3 of 5")).to_be_visible()
    go_on()
    expect(tab.get_by_role("cell", name="moved points")).to_be_visible()
    seen = tab.evaluate("window.seen")
    # Messages that follow one another closely are sent as one, so that not all steps are seen.
    assert seen["steps"] == sorted(seen["steps"])
    assert set(seen["steps"]) <= {f"step {k} of 5" for k in range(1, 6)}
    assert seen["shares"] == sorted(seen["shares"])
    expect(tab.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "100")

    expected = pointmend.denoise(positions)
    expect(tab.get_by_text(number(float(expected.displacement.max())))).to_be_visible()
    after = canvas(tab)
    assert changed(before, after) > 0.05
    tab.get_by_role("button", name="Before / after").click()
    assert changed(canvas(tab), before) < 0.01
    tab.get_by_role("button", name="Before / after").click()
    assert changed(canvas(tab), after) < 0.01

    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save the result").click()
    assert download.value.suggested_filename == "noisy.denoised.ply"
    saved = tmp_path / "saved.ply"
    download.value.save_as(saved)
    result = pointmend.read(saved)
    assert np.array_equal(result.positions, expected.points)
    assert np.array_equal(result.attributes["label"], np.arange(len(positions)))


def test_nothing_to_gain_is_said_plainly(open_tab: OpenTab, clean: Path) -> None:
    tab = open_tab()
    upload_and_wait(tab, clean)
    expect(tab.get_by_text("Nothing to gain")).to_be_visible()


def test_a_hostile_file_gives_the_line_the_api_gives(open_tab: OpenTab, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ply"
    bad.write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 99999999\nend_header\n")
    with pytest.raises(PointmendError) as error:
        pointmend.read(bad)
    line = str(error.value).replace(str(bad), "bad.ply")
    tab = open_tab()
    tab.locator("input[type=file]").first.set_input_files(bad)
    expect(tab.get_by_text(line, exact=True)).to_be_visible()
    tab.locator("input[type=file]").first.set_input_files(__file__)
    expect(tab.get_by_text("unknown suffix '.py'")).to_be_visible()
    expect(tab.get_by_role("button", name="Denoise")).not_to_be_visible()


def test_a_large_file_is_refused_before_it_travels(
    monkeypatch: pytest.MonkeyPatch, open_tab: OpenTab, noisy: Path
) -> None:
    monkeypatch.setattr(texts, "UPLOAD_LIMIT", 1000)
    tab = open_tab()
    tab.locator("input[type=file]").first.set_input_files(noisy)
    expect(tab.get_by_role("alert").get_by_text("open it by its path")).to_be_visible()
    expect(tab.get_by_text("Uploading")).not_to_be_visible()


def test_what_passes_the_browser_is_refused_by_the_server(
    monkeypatch: pytest.MonkeyPatch, open_tab: OpenTab, noisy: Path
) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_LIMIT", 1000)
    tab = open_tab()
    tab.locator("input[type=file]").first.set_input_files(noisy)
    expect(tab.get_by_text("noisy.ply: 0 MB are more than the 0 MB")).to_be_visible()


def test_scans_are_opened_by_path_and_by_dropping_them(
    open_tab: OpenTab, noisy: Path, clean: Path
) -> None:
    tab = open_tab()
    tab.get_by_text("By its path").click()
    field(tab, "Path").fill(str(clean))
    tab.get_by_role("button", name="Open", exact=True).click()
    expect(tab.get_by_label("Shown", exact=True)).to_have_value("clean.xyz")
    tab.evaluate(
        """(content) => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(content)], "dropped.ply"));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true,
                                                              cancelable: true }));
        }""",
        list(noisy.read_bytes()),
    )
    expect(tab.get_by_label("Shown", exact=True)).to_have_value("dropped.ply")
    dropped = canvas(tab)
    choose(tab, "Shown", "clean.xyz")
    assert changed(canvas(tab), dropped) > 0.01
    tab.get_by_role("button", name="Close this scan").click()
    expect(tab.get_by_label("Shown", exact=True)).to_have_value("dropped.ply")


def test_a_run_can_be_cancelled(open_tab: OpenTab, noisy: Path, go_on: GoOn) -> None:
    tab = open_tab()
    upload_and_wait(tab, noisy)
    before = canvas(tab)
    tab.evaluate(WATCH)
    tab.get_by_role("button", name="Denoise").click()
    expect(tab.get_by_text("step 3 of 5")).to_be_visible()
    tab.get_by_role("button", name="Cancel").click()
    expect(tab.get_by_text("cancelling ...")).to_be_visible()
    go_on()
    expect(tab.get_by_text("cancelled; nothing was changed")).to_be_visible()
    expect(tab.get_by_role("button", name="Denoise")).to_be_visible()
    expect(tab.get_by_role("cell", name="moved points")).not_to_be_visible()
    assert not {"step 4 of 5", "step 5 of 5"} & set(tab.evaluate("window.seen.steps"))
    assert changed(canvas(tab), before) < 0.01


def test_colours_have_a_legend_with_numbers(
    open_tab: OpenTab, noisy: Path, tmp_path: Path, write_off: WriteMesh
) -> None:
    tab = open_tab()
    upload_and_wait(tab, noisy)
    rough = canvas(tab)
    expect(tab.get_by_text("roughness: distance of neighbours")).to_be_visible()
    choose(tab, "Colour by", "height")
    expect(tab.get_by_text("height above the lowest point")).to_be_visible()
    positions = pointmend.read(noisy).positions
    height = positions[:, 2] - positions[:, 2].min()
    top = number(float(np.percentile(height, 98)))
    expect(tab.get_by_text(f"{top} or more")).to_be_visible()
    assert changed(canvas(tab), rough) > 0.05

    corners = np.array([[-99.0, -99.0, -10.0], [99.0, -99.0, -10.0], [0.0, 99.0, -10.0]])
    floor = Mesh(corners + np.array([5e5, 5e6, 100.0]), np.array([[0, 1, 2]]))
    write_off(tmp_path / "floor.off", floor)
    tab.get_by_text("Compare with a mesh").click()
    tab.locator("input[type=file]").last.set_input_files(tmp_path / "floor.off")
    expect(tab.get_by_text("distance to the reference mesh")).to_be_visible()
    distance = np.abs(positions[:, 2] - 90.0)
    top = number(float(np.percentile(distance, 98)))
    expect(tab.get_by_text(f"{top} or more")).to_be_visible()


def test_both_are_seen_side_by_side(open_tab: OpenTab, noisy: Path) -> None:
    tab = open_tab()
    upload_and_wait(tab, noisy)
    denoise(tab)
    alone = canvas(tab)
    tab.get_by_label("Side by side").click()
    both = canvas(tab)
    assert changed(alone, both) > 0.1
    drawn = (both.min(axis=2) < 200).any(axis=0)
    assert drawn[:380].mean() > 0.4
    assert drawn[420:].mean() > 0.4


def test_a_picture_and_other_formats_are_saved(
    open_tab: OpenTab, noisy: Path, tmp_path: Path
) -> None:
    tab = open_tab()
    upload_and_wait(tab, noisy)
    denoise(tab)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save a picture").click()
    assert download.value.suggested_filename == "noisy.png"
    with Image.open(download.value.path()) as picture:
        assert picture.width == 2 * 760
    choose(tab, "Format", ".laz")
    tab.get_by_label("With displacement").click()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save the result").click()
    download.value.save_as(tmp_path / "saved.laz")
    saved = pointmend.read(tmp_path / "saved.laz")
    positions = pointmend.read(noisy).positions
    moved = pointmend.denoise(positions)
    assert np.abs(saved.positions - moved.points).max() < 1e-3
    assert np.allclose(saved.attributes["displacement"], moved.displacement, rtol=1e-6)


def test_the_command_line_does_the_same(open_tab: OpenTab, noisy: Path) -> None:
    tab = open_tab()
    upload_and_wait(tab, noisy)
    tab.get_by_text("Options", exact=True).click()
    field(tab, "Noise level").fill("0.25")
    tab.get_by_label("Flag outliers").click()
    expect(tab.locator("code")).to_contain_text("--sigma 0.25 --flag-outliers")
    words = shlex.split(tab.locator("code").inner_text())
    parse(words[1:])
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="copy").click()
    assert tab.evaluate("navigator.clipboard.readText()") == shlex.join(words)
    field(tab, "Noise level").fill("much")
    expect(tab.get_by_text("the noise level is 'much'; give a number")).to_be_visible()


def test_tabs_do_not_see_each_other_and_leave_nothing_behind(
    open_tab: OpenTab, noisy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one, other = open_tab(), open_tab()
    upload_and_wait(one, noisy)
    folders = list(tmp_path.iterdir())
    assert len(folders) == 2
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    assert [path.name for path in tmp_path.rglob("*.ply")] == ["noisy.ply"]
    assert other.get_by_text("noisy.ply").count() == 0
    one.close()
    wait_until(lambda: len(list(tmp_path.iterdir())) == 1)
    assert list(tmp_path.rglob("*.ply")) == []


def test_the_end_of_the_viewer_removes_uploads(
    open_tab: OpenTab,
    viewer: Viewer,
    noisy: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tab = open_tab()
    upload_and_wait(tab, noisy)
    viewer.stop()
    assert list(tmp_path.iterdir()) == []


def test_who_does_not_know_the_secret_gets_nothing(browser: Browser, viewer: Viewer) -> None:
    tab = browser.new_page()
    try:
        tab.goto(viewer.address.split("?")[0])
        expect(tab.get_by_text("Open the whole address")).to_be_visible()
        assert tab.get_by_role("button", name="Choose a scan").count() == 0
    finally:
        tab.close()


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
