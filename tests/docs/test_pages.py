"""What the pages say is so: examples run, named functions exist, links and pictures are there."""

import importlib
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pointmend import read, write
from pointmend.cli.main import main
from pointmend.evaluation import example
from pointmend.geometry.meshes import Mesh, poisson_disk
from pointmend.geometry.procedural import rounded_box, torus

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r'^```(\w+) title="(\w+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?<!\[)`((?:[a-z]+)(?:\.\w+){2,})`")


def blocks(page: Path, title: str) -> list[tuple[str, str]]:
    """Language and text of the blocks of a page that have a title."""
    return [(kind, text) for kind, name, text in BLOCK.findall(page.read_text()) if name == title]


@pytest.fixture
def workplace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_off: Callable[[Path, Mesh], None]
) -> Iterator[Path]:
    """The folder in which the pages' examples run, with what they assume; a small example."""
    cloud = read(example.EXAMPLE)[::8]
    (tmp_path / "demo-output").mkdir()
    write(cloud, tmp_path / "demo-output" / "noisy.ply")
    write(cloud, tmp_path / "example.ply")
    monkeypatch.setattr(example, "EXAMPLE", tmp_path / "example.ply")
    for name in ("meshes/ring.off", "DATA/PUNet/meshes/test/ring.off"):
        write_off(tmp_path / name, torus(24, 16))
    (tmp_path / "shapes").mkdir()
    for name, mesh in (("ring", torus()), ("block", rounded_box())):
        cloud_of = poisson_disk(mesh, 1200, np.random.default_rng(0))
        np.save(tmp_path / "shapes" / f"{name}.npy", cloud_of)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield tmp_path
    for number, handler in handlers.items():  # training takes them over
        signal.signal(number, handler)


def with_examples() -> list[Path]:
    return [page for page in PAGES if blocks(page, "example")]


@pytest.mark.parametrize("page", with_examples(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, text in blocks(page, "example"):
        if kind == "python":
            exec(compile(text, str(page), "exec"), {})
            continue
        for line in text.strip().splitlines():
            program, *words = shlex.split(line, comments=True)
            assert program == "pointmend"
            assert main(words) == 0, capsys.readouterr().err
            assert "pointmend: " not in capsys.readouterr().err, line


def test_every_command_has_an_example() -> None:
    commands = [page for page in (ROOT / "docs/commands").glob("*.md") if page.stem != "index"]
    for page in commands:
        title = "served" if page.stem == "view" else "example"
        text = "".join(text for _, text in blocks(page, title))
        assert f"pointmend {page.stem} " in text


def test_the_example_of_the_viewer_serves(workplace: Path) -> None:
    ((_, text),) = blocks(ROOT / "docs" / "commands" / "view.md", "served")
    words = [sys.executable, "-m", "pointmend", *shlex.split(text)[1:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "http://127.0.0.1:" in process.stdout.readline()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_functions_exist(page: Path) -> None:
    for name in NAME.findall(page.read_text()):
        room, module, *parts = name.split(".")
        if not (ROOT / "src" / "pointmend" / room).is_dir():
            continue
        thing: object = importlib.import_module(f"pointmend.{room}.{module}")
        for part in parts:
            thing = getattr(thing, part)
        assert thing is not None


@pytest.mark.parametrize("name", ["README", "CONTRIBUTING", "SECURITY", "CHANGELOG"])
def test_files_named_in_links_exist(name: str) -> None:
    text = (ROOT / f"{name}.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert "://" in target or (ROOT / target).exists(), target


def test_pictures_stay_small() -> None:
    for picture in (ROOT / "docs").rglob("*.png"):
        assert picture.stat().st_size < 150_000, picture.name
