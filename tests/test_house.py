"""Rules of the house that no linter knows."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pointmend

SOURCE = Path(pointmend.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module(module: Path) -> None:
    text = module.read_text()
    assert text.startswith('"""'), "a module says what it is"
    assert not re.search(r"import pickle|torch\.(load|save)\(|allow_pickle=True", text)
    if module.parent.name != "cli":
        assert not re.search(r"^\s*print\(", text, re.MULTILINE), "only the edge prints"


ROOMS = [module for module in MODULES if module.parent != SOURCE]


@pytest.mark.parametrize("module", ROOMS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_names_its_room_in_one_line(module: Path) -> None:
    room = module.parent.name
    title = "Command line" if room == "cli" else room.capitalize()
    docstring = ast.get_docstring(ast.parse(module.read_text()))
    assert docstring is not None
    assert docstring.startswith((f"{title}: ", f"Room `{room}`: "))
    assert docstring.splitlines()[0].endswith(".")


def test_importing_the_package_does_not_import_torch() -> None:
    heavy = "('torch', 'scipy', 'viser', 'distributed')"
    code = f"import sys, pointmend; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in pointmend.__all__:
        assert getattr(pointmend, name) is not None
    with pytest.raises(AttributeError):
        pointmend.nonsense  # noqa: B018
