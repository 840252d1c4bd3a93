"""The pages build without a warning, and the hooks do what the pages rely on."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pointmend.cli.parsing import COMMANDS, option_names

Hook = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built once as `make docs` builds them."""
    folder = tmp_path_factory.mktemp("site")
    # Not with --quiet: warnings that are not logged are not counted as errors either.
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_page_per_command_with_all_its_options(site: Path, command: str) -> None:
    page = (site / "commands" / f"{command}.html").read_text()
    options = page[page.index('id="options"') :]
    for name in option_names(COMMANDS[command]):
        assert re.search(rf"<td><code>(-h, )?{name}[ <]", options), name
    for part in ("the-maths-in-brief", "example", "see-also"):
        assert f'id="{part}"' in page


def test_files_beside_the_code_are_pages_with_working_links(site: Path) -> None:
    assert 'href="scans.html"' in (site / "benchmarks.html").read_text()
    assert 'href="training-log.html"' in (site / "method.html").read_text()
    assert "Keep a Changelog" in (site / "changelog.html").read_text()


def test_the_method_links_every_equation_to_its_function(site: Path) -> None:
    page = (site / "method.html").read_text()
    assert 'href="api/diffusion.html#pointmend.diffusion.schedule.diffuse"' in page
    sections = re.split(r"<strong>(?=Eq\.|Algorithm)", page)[1:]
    assert len(sections) > 15
    for part in sections:
        text = part.split("</strong>")[0]
        assert "#pointmend." in part or "The same functions" in part, text


def test_the_model_card_has_the_figures_of_the_shipped_weights(site: Path, root: Path) -> None:
    card = json.loads((root / "src/pointmend/weights/default.json").read_text())
    page = (site / "model-card.html").read_text()
    assert f"{card['facts']['patches']:,}" in page
    for row in card["facts"]["validation"]:
        assert f"<td>{row['p2m']:.2f}</td>" in page


def test_a_broken_link_and_a_fetched_file_are_found(hook: Hook, tmp_path: Path) -> None:
    faults = hook("links").faults
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1><a href="https://example.org/x">x</a>')
    page = tmp_path / "a.html"
    page.write_text('<a href="b.html#here">b</a><a href="#top">a</a><i id="top"></i>')
    assert faults(tmp_path) == []
    for wrong, said in (
        ('<a href="c.html">c</a>', "c.html is not there"),
        ('<a href="b.html#there">b</a>', "b.html#there has no such anchor"),
        ('<img src="missing.png">', "missing.png is not there"),
        ('<a href="https://nonsense">x</a>', "https://nonsense is no address"),
        (
            '<script src="https://example.org/a.js"></script>',
            "fetches https://example.org/a.js from",
        ),
    ):
        page.write_text(wrong)
        found = faults(tmp_path)
        assert len(found) == 1
        assert said in found[0]


def test_docstrings_become_lists(hook: Hook) -> None:
    docstring = (
        "Say it.\n\nParameters\n----------\nx, y : (N, 3) points\n    and more.\nrng\n    Seeded.\n"
        "\nReturns\n-------\n(N, 3) others.\n\nExamples\n--------\n>>> 1 + 1\n2"
    )
    assert hook("docstrings").as_markdown(docstring) == (
        "Say it.\n\n**Parameters**\n\n- `x, y`: (N, 3) points\n    and more.\n- `rng`:\n"
        "    Seeded.\n\n**Returns**\n\n(N, 3) others.\n\n**Examples**\n\n"
        "```python\n>>> 1 + 1\n2\n```\n\n"
    )


def test_links_between_files_become_links_between_pages(hook: Hook) -> None:
    linked = hook("pages").linked
    assert linked("[a](../training/LOG.md#x)", "docs/method.md") == "[a](training-log.md#x)"
    assert linked("[a](../docs/scans.md)", "benchmarks/README.md") == "[a](scans.md)"
    assert linked("![a](../docs/b/c.svg)", "training/LOG.md") == "![a](b/c.svg)"
    assert linked("[a](../scans.md)", "docs/commands/denoise.md") == "[a](../scans.md)"
    assert linked("[a](https://b.org/c.md)", "docs/scans.md") == "[a](https://b.org/c.md)"
