import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pointmend import read
from pointmend.cluster import tasks
from pointmend.cluster.work import WorkFolder
from pointmend.denoising import store
from pointmend.errors import InputError

from .conftest import MakePlan


def test_what_a_scheduler_imports_is_light() -> None:
    code = "import sys, pointmend.cluster.tasks; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file system that all workers share"):
        tasks.sample_part(str(tmp_path / "elsewhere"), 0)


def test_a_worker_with_another_version_refuses(
    fields: list[Path], weights: Path, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(fields)
    folder = WorkFolder.of(plan)
    folder.begin(plan, weights)
    monkeypatch.setattr(tasks, "__version__", "9.9")
    with pytest.raises(InputError, match=r"a worker has pointmend 9\.9"):
        tasks.sample_part(str(folder.path), 0)


def test_every_so_many_th_point_of_all_files_stands_for_them(
    fields: list[Path], weights: Path, make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "sample_stride", lambda points: 7)
    plan = make_plan(fields)
    folder = WorkFolder.of(plan)
    folder.begin(plan, weights)
    for part in range(3):
        tasks.sample_part(str(folder.path), part)
    sampled = np.concatenate([np.load(folder.sample(part)) for part in range(3)])
    everything = np.concatenate([read(path).positions for path in fields])
    assert np.array_equal(sampled, everything[::7])
