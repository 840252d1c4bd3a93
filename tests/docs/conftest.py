import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def hook() -> Iterator[Callable[[str], ModuleType]]:
    """The modules of docs/hooks by name, loaded as mkdocs loads them: from their files."""
    loaded: dict[str, ModuleType] = {}

    def load(name: str) -> ModuleType:
        if name not in loaded:
            place = f"docs_hooks_{name}"
            spec = importlib.util.spec_from_file_location(place, ROOT / f"docs/hooks/{name}.py")
            assert spec is not None
            assert spec.loader is not None
            loaded[name] = sys.modules[place] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded[name])
        return loaded[name]

    yield load
    for module in loaded.values():
        sys.modules.pop(module.__name__)
