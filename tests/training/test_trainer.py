import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pointmend.errors import InputError
from pointmend.geometry.planes import TAIL_SCALES
from pointmend.geometry.procedural import torus
from pointmend.network.config import DEFAULT
from pointmend.training import trainer as trainer_module
from pointmend.training.algorithm import Losses, batch_losses
from pointmend.training.checkpoint import read_checkpoint, write_checkpoint
from pointmend.training.config import CONFIGURATIONS, TrainingConfig
from pointmend.training.shapes import MeshSurface, Shape
from pointmend.training.trainer import CHECKPOINT, Limits, StepReport, Trainer

CONFIG = TrainingConfig(
    network=replace(DEFAULT, channels=8, hidden=8, layers=1, blocks=1, graph_candidates=20),
    target="projection",
    batch=2,
    patch_points=80,
    mask_points=20,
    warmup=5,
)
MUON = replace(CONFIG, optimiser="muon")


def make_shapes() -> list[Shape]:
    mesh = torus()
    surface = MeshSurface.of(mesh, 10_000, np.random.default_rng(0))
    return [Shape("torus", [surface.points[:2000]], surface)]


@pytest.fixture(scope="module")
def shapes() -> list[Shape]:
    return make_shapes()


def weights(run: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(run / CHECKPOINT)[0]


@pytest.mark.parametrize("config", [CONFIG, MUON], ids=["adamw", "muon"])
def test_resuming_is_bit_exact(config: TrainingConfig, shapes: list[Shape], tmp_path: Path) -> None:
    Trainer(shapes, config, tmp_path / "straight").train(Limits(steps=20))
    Trainer(shapes, config, tmp_path / "halves").train(Limits(steps=10))
    resumed = Trainer(
        shapes, config, tmp_path / "halves", start_from=[tmp_path / "halves" / CHECKPOINT]
    )
    assert resumed.optimiser.step == 10
    resumed.train(Limits(steps=10))
    straight, halves = weights(tmp_path / "straight"), weights(tmp_path / "halves")
    assert straight.keys() == halves.keys()
    assert all(torch.equal(straight[name], halves[name]) for name in straight)


def test_a_run_can_go_on_with_another_optimiser(shapes: list[Shape], tmp_path: Path) -> None:
    Trainer(shapes, CONFIG, tmp_path / "adamw").train(Limits(steps=3))
    before = weights(tmp_path / "adamw")
    trainer = Trainer(shapes, MUON, tmp_path, start_from=[tmp_path / "adamw" / CHECKPOINT])
    kept = trainer.optimiser.tensors()
    for name, tensor in kept.items():
        assert torch.equal(tensor, before[name]), name
    trainer.train(Limits(steps=2))
    after = weights(tmp_path)
    inner = {name.split(".", 2)[2] for name in after if name.startswith("muon.")}
    assert "gradient.blocks.0.first.weight" in inner
    assert not inner & {name.split(".", 2)[2] for name in after if name.startswith("adam.")}
    back = Trainer(shapes, CONFIG, tmp_path / "back", start_from=[tmp_path / CHECKPOINT])
    back.train(Limits(steps=1))
    assert all(not name.startswith("muon.") for name in weights(tmp_path / "back"))


def test_a_run_goes_on_from_the_mean_of_branches(shapes: list[Shape], tmp_path: Path) -> None:
    ends = []
    for seed in (1, 2):
        branch = Trainer(shapes, replace(CONFIG, seed=seed), tmp_path / f"branch-{seed}")
        branch.train(Limits(steps=2 + seed))
        ends.append(branch)
    paths = [tmp_path / f"branch-{seed}" / CHECKPOINT for seed in (1, 2)]
    trainer = Trainer(shapes, CONFIG, tmp_path / "on", start_from=paths)
    for name, weight in trainer.network.named_parameters():
        expected = 0.5 * (ends[0].optimiser.average[name] + ends[1].optimiser.average[name])
        torch.testing.assert_close(weight.detach(), expected)
        torch.testing.assert_close(trainer.optimiser.average[name], expected)
    assert trainer.optimiser.step == 3
    trainer.train(Limits(steps=1))
    assert trainer.state.step == 4
    other = Trainer(shapes, MUON, tmp_path / "muon")
    other.train(Limits(steps=1))
    with pytest.raises(InputError, match="different networks or optimisers"):
        Trainer(
            shapes, CONFIG, tmp_path / "no", start_from=[*paths, tmp_path / "muon" / CHECKPOINT]
        )


@pytest.mark.parametrize("config", [CONFIG, MUON], ids=["adamw", "muon"])
@pytest.mark.parametrize(
    ("what", "layer", "first"),
    [
        ("tails", "extraction.planes.0.weight", -TAIL_SCALES),
        ("told_noise", "gradient.told.weight", 0),
        ("told_ways", "gradient.ways.weight", 0),
    ],
)
def test_a_run_can_be_told_more_later(
    config: TrainingConfig, what: str, layer: str, first: int, shapes: list[Shape], tmp_path: Path
) -> None:
    config = config.changed({f"network.{what}": False})
    before = Trainer(shapes, config, tmp_path / "before")
    before.train(Limits(steps=3))
    told = config.changed({f"network.{what}": True})
    trainer = Trainer(
        shapes, told, tmp_path / "after", start_from=[tmp_path / "before" / CHECKPOINT]
    )
    x = torch.from_numpy(shapes[0].clouds[0][:200])
    with torch.no_grad():
        torch.testing.assert_close(trainer.network(x, 200), before.network(x, 200))
    trainer.train(Limits(steps=2))
    listens = trainer.network.state_dict()[layer][:, first:]
    assert listens.abs().max() > 0.0
    with pytest.raises(InputError, match="another network"):
        Trainer(shapes, config, tmp_path, start_from=[tmp_path / "after" / CHECKPOINT])


@pytest.mark.parametrize("config", [CONFIG, MUON], ids=["adamw", "muon"])
@pytest.mark.parametrize(
    ("what", "layer"),
    [
        ("layers", "extraction.convolutions.1.output.weight"),
        ("blocks", "gradient.blocks.1.second.weight"),
    ],
)
def test_a_network_can_grow_deeper_later(
    config: TrainingConfig, what: str, layer: str, shapes: list[Shape], tmp_path: Path
) -> None:
    config = config.changed({f"network.{what}": 1})
    before = Trainer(shapes, config, tmp_path / "before")
    before.train(Limits(steps=3))
    deeper = config.changed({f"network.{what}": 2})
    trainer = Trainer(
        shapes, deeper, tmp_path / "after", start_from=[tmp_path / "before" / CHECKPOINT]
    )
    x = torch.from_numpy(shapes[0].clouds[0][:200])
    with torch.no_grad():
        torch.testing.assert_close(trainer.network(x, 200), before.network(x, 200))
    new = trainer.network.state_dict()[layer].clone()
    trainer.train(Limits(steps=3))
    assert not torch.equal(trainer.network.state_dict()[layer], new)
    with pytest.raises(InputError, match="another network"):
        Trainer(shapes, config, tmp_path, start_from=[tmp_path / "after" / CHECKPOINT])


def test_the_average_of_what_came_later_begins_where_it_came(
    shapes: list[Shape], tmp_path: Path
) -> None:
    before = Trainer(shapes, CONFIG, tmp_path / "before")
    before.train(Limits(steps=30))
    told = CONFIG.changed({"network.told_noise": True, "learning_rate": 0.01})
    trainer = Trainer(
        shapes, told, tmp_path / "after", start_from=[tmp_path / "before" / CHECKPOINT]
    )
    name = "gradient.told.weight"
    at_first = trainer.network.get_parameter(name).detach().clone()
    trainer.train(Limits(steps=30))
    now, mean = trainer.network.get_parameter(name).detach(), trainer.optimiser.average[name]
    # With the decay of an old run 30 steps would be 3 percent of the average.
    assert (mean - at_first).norm() > 0.3 * (now - at_first).norm() > 0.0


def test_muon_moves_inner_matrices_evenly_in_all_directions(
    shapes: list[Shape], tmp_path: Path
) -> None:
    """Singular values near one where there is a gradient, at 0.2 per number and unit of rate."""
    trainer = Trainer(shapes, MUON, tmp_path)
    trainer.train(Limits(steps=MUON.warmup))
    name = "fusion.output.2.weight"
    before = trainer.network.get_parameter(name).detach().clone()
    trainer.train(Limits(steps=1))
    moved = trainer.network.get_parameter(name).detach() - before
    sizes = torch.linalg.svdvals(moved) / (2.0 * MUON.learning_rate * 0.2 * 8**0.5)
    assert 0.6 < sizes[0] < 1.3
    assert sizes[1] > 0.6


def test_training_learns(shapes: list[Shape], tmp_path: Path) -> None:
    errors: list[float] = []

    def note(report: StepReport) -> None:
        errors.append(report.loss)

    Trainer(shapes, replace(CONFIG, t_min=500), tmp_path).train(Limits(steps=150), note)
    assert np.mean(errors[-40:]) < 0.8 * np.mean(errors[:40])


def test_the_state_is_told_in_the_checkpoint(shapes: list[Shape], tmp_path: Path) -> None:
    Trainer(shapes, CONFIG, tmp_path, data="abc").train(Limits(steps=3))
    _, state = read_checkpoint(tmp_path / CHECKPOINT)
    assert (state.step, state.patches, state.data) == (3, 6, "abc")
    assert state.training_config == CONFIG
    assert state.cpu_seconds > 0
    readable = json.loads((tmp_path / CHECKPOINT).with_suffix(".json").read_text())
    assert readable["step"] == 3


def test_a_loss_spike_is_survived(
    shapes: list[Shape], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(shapes, CONFIG, tmp_path)
    trainer.train(Limits(steps=5))
    before = {n: p.detach().clone() for n, p in trainer.network.named_parameters()}
    honest = batch_losses

    def spoilt(factor: float) -> Any:
        def losses(*arguments: Any) -> Losses:
            found = honest(*arguments)
            return replace(found, total=found.total * factor)

        return losses

    monkeypatch.setattr(trainer_module, "batch_losses", spoilt(np.nan))
    trainer.train(Limits(steps=1))
    assert trainer.optimiser.skipped == 1
    assert all(torch.equal(before[n], p) for n, p in trainer.network.named_parameters())
    norm = trainer.optimiser.norm
    monkeypatch.setattr(trainer_module, "batch_losses", spoilt(1e6))
    trainer.train(Limits(steps=1))
    assert trainer.optimiser.norm < 2 * norm
    assert all(p.isfinite().all() for p in trainer.network.parameters())


def test_the_cool_down_ends_at_zero(shapes: list[Shape], tmp_path: Path) -> None:
    trainer = Trainer(shapes, CONFIG, tmp_path)
    trainer.train(Limits(steps=6))
    rates: list[float] = []
    trainer.train(Limits(steps=4, cooldown=True), lambda r: rates.append(r.learning_rate))
    assert rates == pytest.approx([CONFIG.learning_rate * share for share in (1, 0.75, 0.5, 0.25)])
    with pytest.raises(InputError, match="cool-down"):
        Limits(cooldown=True)


def test_a_sitting_ends_at_whichever_limit_comes_first(shapes: list[Shape], tmp_path: Path) -> None:
    limits = Limits(steps=10, minutes=1.0, cpu_minutes=2.0)
    assert limits.share_used(5, 6.0, 12.0) == pytest.approx(0.5)
    assert limits.share_used(1, 30.0, 12.0) == pytest.approx(0.5)
    assert limits.share_used(1, 6.0, 90.0) == pytest.approx(0.75)
    assert Limits().share_used(10**9, 1e9, 1e9) == 0.0
    assert Limits(steps=0).share_used(0, 0.0, 0.0) == 1.0
    trainer = Trainer(shapes, CONFIG, tmp_path)
    rates: list[float] = []
    trainer.train(Limits(cpu_minutes=0.02, cooldown=True), lambda r: rates.append(r.learning_rate))
    assert 1.2 <= trainer.state.cpu_seconds < 6.0
    assert rates[-1] < 0.9 * CONFIG.learning_rate


def test_the_averaged_weights_follow_the_weights(shapes: list[Shape], tmp_path: Path) -> None:
    trainer = Trainer(shapes, replace(CONFIG, ema=0.0), tmp_path)
    trainer.train(Limits(steps=4))
    averaged = trainer.averaged_network()
    for (_, ours), (_, theirs) in zip(
        averaged.named_parameters(), trainer.network.named_parameters()
    ):
        assert torch.equal(ours, theirs)


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import torch
torch.set_num_threads(1)
from test_trainer import CONFIG, make_shapes
from pointmend.training.trainer import Limits, Trainer
import signal
trainer = Trainer(make_shapes(), CONFIG, Path({run!r}))
signal.signal(signal.SIGTERM, lambda *_: trainer.stop())
trainer.train(Limits({limits}), lambda report: print("stepped", flush=True))
"""


def start(run: Path, limits: str, **environment: str) -> "subprocess.Popen[str]":
    script = SCRIPT.format(here=str(Path(__file__).parent), run=str(run), limits=limits)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def wait_for(path: Path, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was never written"
        time.sleep(0.05)


def test_kill_9_while_saving_never_costs_a_checkpoint(tmp_path: Path) -> None:
    for _ in range(3):
        process = start(tmp_path, "steps=100000, save_every=0.0")
        wait_for(tmp_path / CHECKPOINT)
        time.sleep(0.4)
        process.kill()
        process.communicate()
        tensors, state = read_checkpoint(tmp_path / CHECKPOINT)
        assert state.step > 0
        assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_sigterm_stops_cleanly_with_a_checkpoint(tmp_path: Path) -> None:
    process = start(tmp_path, "steps=100000, save_every=60.0")
    assert process.stdout is not None
    assert process.stdout.readline() == "stepped\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert read_checkpoint(tmp_path / CHECKPOINT)[1].step > 0


def test_two_processes_learn_what_one_learns(shapes: list[Shape], tmp_path: Path) -> None:
    together = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29712"}
    run = tmp_path / "two"
    pair = [start(run, "steps=4", RANK=str(rank), **together) for rank in range(2)]
    for process in pair:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    Trainer(shapes, CONFIG, tmp_path / "one").train(Limits(steps=4))
    one, two = weights(tmp_path / "one"), weights(run)
    assert one.keys() == two.keys()
    for name in one:
        # Adam divides by the gradient's size, so weights whose gradient is only rounding may
        # differ; the gradients themselves, summed up in its first moment, may not.
        if name.startswith(("adam.exp_avg.", "muon.momentum_buffer.")):
            assert torch.allclose(one[name], two[name], rtol=1e-3, atol=1e-4), name


def test_broken_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no checkpoint"):
        read_checkpoint(tmp_path / "absent")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x07" * 40)
    with pytest.raises(InputError, match="not a checkpoint"):
        read_checkpoint(broken)


def test_a_failed_write_leaves_the_old_checkpoint(
    shapes: list[Shape], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(shapes, CONFIG, tmp_path)
    trainer.train(Limits(steps=1))
    file = (tmp_path / CHECKPOINT).stat().st_ino
    trainer.save()
    # A new file takes the old one's place: nothing is ever written into a checkpoint.
    assert (tmp_path / CHECKPOINT).stat().st_ino != file
    assert not list(tmp_path.glob("*.tmp"))
    old = (tmp_path / CHECKPOINT).read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_checkpoint(tmp_path / CHECKPOINT, trainer.optimiser.tensors(), trainer.state)
    assert (tmp_path / CHECKPOINT).read_bytes() == old


def test_configurations_survive_plain_values_and_refuse_unknown_keys() -> None:
    for config in CONFIGURATIONS.values():
        assert TrainingConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    with pytest.raises(InputError, match="momentum"):
        TrainingConfig.from_dict({"momentum": 0.9})
    with pytest.raises(InputError, match="target"):
        TrainingConfig.from_dict({"target": "furthest"})


def test_a_batch_that_cannot_be_shared_is_refused(
    shapes: list[Shape], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer_module, "process_place", lambda: (0, 3))
    with pytest.raises(InputError, match="cannot be shared"):
        Trainer(shapes, CONFIG, tmp_path)
