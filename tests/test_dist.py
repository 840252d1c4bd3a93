"""
What is handed out: wheel and sdist hold what they should, and the wheel works where it alone is.

Takes about ten seconds; nothing is fetched.
"""

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import pointmend

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 2_000_000
"""Bytes a wheel may have; weights and example are 0.8 MB of it."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built as `make dist` builds them."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """The wheel alone."""
    (found,) = dist.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "pointmend",
        f"pointmend-{pointmend.__version__}.dist-info",
    }
    for needed in ("py.typed", "data/example.ply", "weights/default.safetensors", "viewer/drop.js"):
        assert f"pointmend/{needed}" in names
    odd = [name for name in names if re.search(r"test_|checkpoint\.s|\.(off|obj|npz|npy)$", name)]
    assert odd == []
    assert wheel.stat().st_size < LARGEST


def test_the_readme_states_its_size(wheel: Path) -> None:
    stated = re.search(r"wheel has ([\d.]+) MB", (ROOT / "README.md").read_text())
    assert stated is not None
    assert float(stated[1]) == pytest.approx(wheel.stat().st_size / 1e6, abs=0.15)


def test_the_sdist_builds_the_same_package(dist: Path, wheel: Path) -> None:
    (found,) = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= inside
    assert not any(name.startswith(("tests", "training", "docs", "benchmarks")) for name in inside)
    with zipfile.ZipFile(wheel) as archive:
        modules = {f"src/{name}" for name in archive.namelist() if name.startswith("pointmend/")}
    assert modules <= inside


def test_the_wheel_runs_the_demo_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    # What it depends on is lent by this environment, but not this environment's own pointmend:
    # a line in a .pth file leads to a folder, and not to what that folder's .pth files lead to.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(*words: str) -> str:
        program = str(tmp_path / "env" / "bin" / "pointmend")
        done = subprocess.run(
            [program, *words], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    where = [str(python), "-c", "import pointmend; print(pointmend.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(site))
    assert run("--version") == f"pointmend {pointmend.__version__}\n"
    facts = json.loads(run("demo", "--json", "--threads", "1"))
    assert facts["improvement"] > 2.0
    assert (tmp_path / "demo-output" / "before-after.png").is_file()


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/pointmend/__init__.py"
    (newest, *_) = re.findall(r"^## .*?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest == pointmend.__version__


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(one for extra in extras for one in extra)]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    for one in asked:
        name = re.split(r"[\[>=<]", one)[0].lower().replace("_", "-")
        assert name in pinned or name == "pointmend", one
        assert ">=" in one or name == "pointmend", f"{one} has no lower bound"
