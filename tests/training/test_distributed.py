"""Training on two processes, started as a user would start them: by torchrun."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pointmend.training.checkpoint import read_checkpoint
from pointmend.training.session import MODEL, Plan, Session
from pointmend.training.trainer import CHECKPOINT, Limits, Trainer

from .test_session import CONFIG

# Each process trains three times, and writes down which patches it took and what it did beside.
SCRIPT = """
import json, sys
from pathlib import Path
import torch
sys.path.insert(0, {root!r})
from tests.training import test_distributed as test
from pointmend.training import trainer as trainer_module
from pointmend.training.session import Session

torch.set_num_threads(1)
for name, seed in (("first", 0), ("again", 0), ("other", 1)):
    plan = test.plan(Path({folder!r}), name, seed)
    session = Session(plan, print)
    rank, did = session.trainer.rank, []
    write, validate = trainer_module.write_checkpoint, session.validate

    def noted_write(path, tensors, state):
        did.append("checkpoint")
        write(path, tensors, state)

    def noted_validate():
        did.append("validation")
        return validate()

    trainer_module.write_checkpoint, session.validate = noted_write, noted_validate
    session.run()
    trainer_module.write_checkpoint = write
    if name == "first":
        session.write_model()
    patches = [test.patches_of(session.trainer, step) for step in range(3)]
    notes = {{"did": did, "patches": patches, "world": session.trainer.world}}
    Path({folder!r}, f"{{name}}-{{rank}}.json").write_text(json.dumps(notes))
"""


def plan(folder: Path, name: str, seed: int) -> Plan:
    """Three steps on patches of a ball, two at a time, validated after the first."""
    return Plan(
        data=folder / "data",
        run=folder / name,
        config=CONFIG.from_dict(CONFIG.to_dict() | {"batch": 2, "seed": seed}),
        limits=Limits(steps=3),
        cache=folder / "cache",
        validate_every=1e-6 if name == "first" else 0.0,
    )


def patches_of(trainer: Trainer, step: int) -> list[str]:
    """What stands for the patches that a process takes in a step."""
    patches = trainer._prepare(step).patches
    return [hashlib.sha256(patch.noisy.tobytes()).hexdigest() for patch in patches]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes have trained."""
    folder = tmp_path_factory.mktemp("two")
    ball = np.random.default_rng(0).standard_normal((1500, 3))
    (folder / "data").mkdir()
    np.save(folder / "data" / "ball.npy", ball / np.linalg.norm(ball, axis=1, keepdims=True))
    script = folder / "script.py"
    root = str(Path(__file__).parents[2])
    script.write_text(SCRIPT.format(root=root, folder=str(folder)))
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def notes(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(2)]


def tensors(folder: Path, name: str) -> dict[str, torch.Tensor]:
    return read_checkpoint(folder / name / CHECKPOINT)[0]


def test_the_same_seed_gives_the_same_patches_and_the_same_weights(folder: Path) -> None:
    first, again, other = (notes(folder, name) for name in ("first", "again", "other"))
    assert [note["world"] for note in first] == [2, 2]
    for rank in range(2):
        assert first[rank]["patches"] == again[rank]["patches"]
        assert first[rank]["patches"] != other[rank]["patches"]
    ours, theirs = tensors(folder, "first"), tensors(folder, "again")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    elsewhere = tensors(folder, "other")
    assert not all(torch.equal(ours[name], elsewhere[name]) for name in ours)


def test_two_processes_share_the_patches_that_one_would_take(folder: Path) -> None:
    alone = Session(plan(folder, "alone", 0), print).trainer
    for step in range(3):
        shared = [note["patches"][step] for note in notes(folder, "first")]
        assert shared[0] + shared[1] == patches_of(alone, step)
        assert shared[0] != shared[1]
    alone.train(Limits(steps=3))
    ours, theirs = tensors(folder, "alone"), tensors(folder, "first")
    for name in ours:
        # Adam divides by the gradient's size: where that is rounding, weights may differ.
        if name.startswith(("adam.exp_avg.", "muon.momentum_buffer.")):
            assert torch.allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-4), name


def test_one_process_validates_saves_and_writes_the_model(folder: Path) -> None:
    did = [note["did"] for note in notes(folder, "first")]
    assert did[0].count("validation") == 3
    assert did[0][-1] == "checkpoint"
    assert did[1] == []
    assert len(read_checkpoint(folder / "first" / CHECKPOINT)[1].validation) == 3
    assert (folder / "first" / MODEL).exists()
