from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pointmend.denoising.denoiser import Denoiser
from pointmend.errors import InputError
from pointmend.network.config import DEFAULT
from pointmend.training import session as sitting
from pointmend.training.checkpoint import read_checkpoint
from pointmend.training.config import TrainingConfig
from pointmend.training.library import build_shape
from pointmend.training.session import MODEL, Plan, Session
from pointmend.training.trainer import CHECKPOINT, Limits

CONFIG = TrainingConfig(
    network=replace(DEFAULT, channels=8, hidden=8, layers=1, blocks=1),
    target="projection",
    batch=1,
    patch_points=80,
    mask_points=20,
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    rng = np.random.default_rng(0)
    ball = rng.standard_normal((1500, 3))
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "ball.npy", ball / np.linalg.norm(ball, axis=1, keepdims=True))
    return Plan(
        data=tmp_path / "data",
        run=tmp_path / "run",
        config=CONFIG,
        limits=Limits(steps=2),
        cache=tmp_path / "cache",
        validate_every=0.0,
    )


def no_warning(line: str) -> None:
    raise AssertionError(line)


def test_a_folder_of_clouds_becomes_a_model_that_denoises(plan: Plan) -> None:
    session = Session(plan, no_warning)
    session.run()
    model = session.write_model()
    assert model == plan.run / MODEL
    result = Denoiser.load(model, device="cpu").denoise(np.random.default_rng(1).random((300, 3)))
    assert np.isfinite(result.points).all()


def test_made_shapes_take_part_when_the_settings_say_so(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitting, "build_shape", partial(build_shape, resolutions=(1000,)))
    made = {"thin_shapes": 1, "relief_shapes": 1, "limb_shapes": 1, "shell_shapes": 1}
    session = Session(replace(plan, settings=made), no_warning)
    assert [shape.name for shape in session.trainer.shapes] == [
        "ball",
        "thin-000",
        "shell-000",
        "limbs-000",
        "solid-000",
        "relief-000",
    ]


def test_resuming_goes_on_and_a_new_run_does_not_overwrite(plan: Plan) -> None:
    Session(plan, no_warning).run()
    with pytest.raises(InputError, match="holds a run already"):
        Session(plan, no_warning)
    Session(replace(plan, resume=True), no_warning).run()
    assert read_checkpoint(plan.run / CHECKPOINT)[1].step == 4


def test_a_branch_leaves_its_trunk_alone(plan: Plan, tmp_path: Path) -> None:
    Session(plan, no_warning).run()
    trunk = (plan.run / CHECKPOINT).read_bytes()
    side = replace(plan, run=tmp_path / "side", branch=[plan.run / CHECKPOINT])
    Session(replace(side, limits=Limits(steps=3, cooldown=True)), no_warning).run()
    assert read_checkpoint(tmp_path / "side" / CHECKPOINT)[1].step == 5
    assert (plan.run / CHECKPOINT).read_bytes() == trunk


def test_a_branch_may_change_settings_but_not_its_network(plan: Plan, tmp_path: Path) -> None:
    Session(plan, no_warning).run()
    side = replace(plan, run=tmp_path / "side", branch=[plan.run / CHECKPOINT])
    Session(replace(side, settings={"loss_lambda": 0.9}), no_warning).run()
    config = read_checkpoint(tmp_path / "side" / CHECKPOINT)[1].training_config
    assert config == replace(CONFIG, loss_lambda=0.9)
    other = replace(side, run=tmp_path / "other", settings={"network.hidden": 16})
    with pytest.raises(InputError, match="another network"):
        Session(other, no_warning)


def test_fine_tuning_starts_from_the_given_weights(plan: Plan, tmp_path: Path) -> None:
    first = Session(plan, no_warning)
    first.run()
    model = first.write_model()
    tuned = Session(replace(plan, run=tmp_path / "tuned", init=str(model)), no_warning)
    given = first.trainer.averaged_network().state_dict()
    started = tuned.trainer.network.state_dict()
    assert all(np.array_equal(given[name], started[name]) for name in given)
    tuned.run()
    with pytest.raises(InputError, match="exclude each other"):
        Session(replace(plan, resume=True, init="default"), no_warning)


def test_validation_is_recorded(plan: Plan) -> None:
    session = Session(plan, no_warning)
    session.run()
    row = session.validate()
    assert row["step"] == 2
    assert session.trainer.state.validation == [row]
