from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.errors import InputError
from pointmend.geometry.procedural import bumpy_sphere, torus
from pointmend.geometry.thin import thin_shape
from pointmend.geometry.triangles import points_to_mesh
from pointmend.network.config import DEFAULT
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, load_model
from pointmend.training.config import TrainingConfig
from pointmend.training.library import Source
from pointmend.training.release import mixed, release
from pointmend.training.shapes import MeshSurface, Shape
from pointmend.training.trainer import CHECKPOINT, Limits, Trainer
from pointmend.training.validation import (
    Score,
    ValidationShape,
    calibrate,
    summarise,
    validate,
    validation_shapes,
)

CONFIG = TrainingConfig(
    network=replace(DEFAULT, channels=8, hidden=8, layers=1, blocks=1),
    target="projection",
    batch=1,
    patch_points=80,
    mask_points=20,
)


def test_a_checkpoint_becomes_a_model_that_knows_its_noise(tmp_path: Path) -> None:
    mesh = torus()
    surface = MeshSurface.of(mesh, 5_000, np.random.default_rng(0))
    shape = Shape("torus", [surface.points[:2000]], surface)
    Trainer([shape], CONFIG, tmp_path, data="hash").train(Limits(steps=2))
    sources = [Source("torus", torus()), Source("bumpy", bumpy_sphere())]
    clouds = validation_shapes(sources, 1500, tmp_path / "cache")
    seen: list[Score] = []
    # What two steps taught reads mostly shape: the noise of one shape says nothing of another's.
    card = release(
        tmp_path / CHECKPOINT,
        tmp_path / "mine",
        clouds,
        (0.02,),
        seen.append,
        calibrate_on=clouds[:1],
    )
    assert card.facts["patches"] == 2
    assert card.facts["data"] == "hash"
    (row,) = card.facts["validation"]
    assert row["shapes"] == 2
    assert row["p2m"] == pytest.approx(np.mean([score.p2m for score in seen]))

    denoiser = Denoiser.load(tmp_path / "mine.safetensors", device="cpu")
    noisy = clouds[0].noisy(0.02)
    estimate = denoiser.estimate_noise(noisy)
    assert estimate.sigma == pytest.approx((noisy - clouds[0].clean).std(), rel=0.05)


def test_mixing_takes_the_mean_of_the_models_weights(tmp_path: Path) -> None:
    mesh = torus()
    surface = MeshSurface.of(mesh, 5_000, np.random.default_rng(0))
    shape = Shape("torus", [surface.points[:2000]], surface)
    Trainer([shape], CONFIG, tmp_path / "one", data="hash").train(Limits(steps=1))
    Trainer([shape], CONFIG, tmp_path / "two", data="hash").train(Limits(steps=3))
    release(tmp_path / "one" / CHECKPOINT, tmp_path / "first", ())
    release(tmp_path / "two" / CHECKPOINT, tmp_path / "second", ())
    first = str(tmp_path / "first.safetensors")
    card = release(tmp_path / "two" / CHECKPOINT, tmp_path / "mean", (), mix=(first,))
    assert card.facts["patches"] == 3
    assert [origin["patches"] for origin in card.facts["mixed_with"]] == [1]
    release(tmp_path / "two" / CHECKPOINT, tmp_path / "thrice", (), mix=(first, first))
    one, two, mean, thrice = (
        load_model(tmp_path / f"{name}.safetensors")[0].state_dict()
        for name in ("first", "second", "mean", "thrice")
    )
    assert not torch.equal(one["gradient.output.bias"], two["gradient.output.bias"])
    for name in mean:
        assert torch.allclose(mean[name], 0.5 * (one[name] + two[name]), atol=1e-7)
        assert torch.allclose(thrice[name], (2.0 * one[name] + two[name]) / 3.0, atol=1e-7)
    with pytest.raises(InputError, match="another network"):
        release(tmp_path / "two" / CHECKPOINT, tmp_path / "odd", (), mix=("default",))


def test_what_only_some_of_the_mixed_networks_are_told_is_the_mean_of_those() -> None:
    torch.manual_seed(0)
    config = replace(DEFAULT, channels=8, hidden=8, told_noise=True, told_ways=True)
    first, second = ScoreNetwork(config), ScoreNetwork(config)
    deaf = ScoreNetwork(replace(config, told_noise=False, told_ways=False))
    with torch.no_grad():
        for network in (first, second):
            network.gradient.told.weight.normal_()
            network.gradient.ways.weight.normal_()
    mean, one, two, three = (
        network.state_dict() for network in (mixed(first, (second, deaf)), first, second, deaf)
    )
    heard = "gradient.offset.weight"
    for told in ("gradient.told.weight", "gradient.ways.weight"):
        assert torch.allclose(mean[told], 0.5 * (one[told] + two[told]))
    assert torch.allclose(mean[heard], (one[heard] + two[heard] + three[heard]) / 3.0)
    with pytest.raises(InputError, match="another network"):
        mixed(deaf, (first,))


def test_summaries_average_over_shapes() -> None:
    scores = [
        Score("a", 1000, 0.01, 1.0, 2.0, 3.0, 1.1),
        Score("b", 1000, 0.01, 3.0, 4.0, 5.0, 0.9),
        Score("a", 1000, 0.02, 9.0, 9.0, 9.0, 1.0),
    ]
    first, second = summarise(scores)
    assert (first["cd"], first["p2m"], first["sigma_ratio"]) == (2.0, 7.0, 1.0)
    assert (second["level"], second["shapes"]) == (0.02, 1)


def test_validation_noise_is_always_the_same(tmp_path: Path) -> None:
    (shape,) = validation_shapes([Source("torus", torus())], 1000, tmp_path)
    assert np.array_equal(shape.noisy(0.01), shape.noisy(0.01))
    assert (shape.noisy(0.01) - shape.clean).std() == pytest.approx(0.01, rel=0.05)


def test_several_processes_find_what_one_does(tmp_path: Path) -> None:
    sources = [Source("torus", torus()), Source("bumpy", bumpy_sphere())]
    clouds = validation_shapes(sources, 1500, tmp_path)
    denoiser = Denoiser.load("default", device="cpu")
    alone, together = (
        calibrate(denoiser, clouds[:1], (0.02, 0.03), clouds[1:], clouds, processes=count)
        for count in (1, 2)
    )
    assert alone == together
    assert alone.fit is not None
    seen: list[Score] = []
    scores = validate(denoiser, clouds, (0.02,), steps=1, after=seen.append, processes=2)
    assert scores == seen == validate(denoiser, clouds, (0.02,), steps=1)


def test_validation_can_say_the_noise_and_spread_the_points(tmp_path: Path) -> None:
    shapes = validation_shapes([Source("torus", torus())], 2000, tmp_path)
    denoiser = Denoiser.load("default", device="cpu")
    (found,) = validate(denoiser, shapes, (0.02,))
    (known,) = validate(denoiser, shapes, (0.02,), known=True)
    (spread,) = validate(denoiser, shapes, (0.02,), known=True, spread=True)
    assert found.sigma_ratio != 1.0
    assert known.sigma_ratio == pytest.approx(1.0)
    assert spread.cd < 0.95 * known.cd


def test_noise_is_calibrated_by_all_that_is_seen(tmp_path: Path) -> None:
    (torus_shape,) = validation_shapes([Source("torus", torus())], 8000, tmp_path)
    network, card = load_model("default")
    denoiser = Denoiser(network, ModelCard(card.network), torch.device("cpu"))
    table = calibrate(denoiser, [torus_shape], (0.02, 0.03, 0.04), [torus_shape])
    assert table.fit is not None
    calibrated = Denoiser(network, ModelCard(card.network, table.to_dict()), torch.device("cpu"))
    scores_alone = replace(table, fit=None).to_dict()
    without = Denoiser(network, ModelCard(card.network, scores_alone), torch.device("cpu"))
    noisy = torus_shape.noisy(0.035)
    true = float((noisy - torus_shape.clean).std())
    found = calibrated.estimate_noise(noisy).sigma
    assert found == pytest.approx(true, rel=0.05)
    assert found != without.estimate_noise(noisy).sigma
    seen, across = torus_shape.scanned(0.02) or (noisy, 0.0)
    assert calibrated.estimate_noise(seen).sigma == pytest.approx(across, rel=0.3)
    quiet = [ValidationShape("quiet", None, torus_shape.clean)]
    assert calibrate(denoiser, quiet, (0.0025,)).fit is None


def test_walls_take_part_in_the_fit_alone(tmp_path: Path) -> None:
    torus_shape, thin = validation_shapes(
        [Source("torus", torus()), Source("thin", thin_shape(np.random.default_rng(0)).mesh)],
        2000,
        tmp_path,
    )
    network, card = load_model("default")
    denoiser = Denoiser(network, ModelCard(card.network), torch.device("cpu"))
    levels = (0.03, 0.04)
    plain = calibrate(denoiser, [torus_shape], levels)
    table = calibrate(denoiser, [torus_shape], levels, walls=[thin])
    assert replace(table, fit=None) == replace(plain, fit=None)
    assert table.fit is not None
    errors = []
    for fit in (plain.fit, table.fit):
        learned = Denoiser(
            network,
            ModelCard(card.network, replace(table, fit=fit).to_dict()),
            torch.device("cpu"),
        )
        errors.append(abs(learned.estimate_noise(thin.noisy(0.04)).sigma / 0.04 - 1.0))
    assert errors[1] < min(0.05, errors[0])


def test_a_scan_sees_one_side_and_is_noisy_along_its_rays(tmp_path: Path) -> None:
    (shape,) = validation_shapes([Source("torus", torus())], 4000, tmp_path)
    noisy, across = shape.scanned(0.01) or (shape.clean, 0.0)
    assert 1000 < len(noisy) < 3000
    assert shape.mesh is not None
    off = np.sqrt(points_to_mesh(noisy, shape.mesh).squared)
    assert np.sqrt(np.mean(off**2)) == pytest.approx(across, rel=0.1)
    again, same = shape.scanned(0.01) or (shape.clean, 0.0)
    assert np.array_equal(again, noisy)
    assert same == across
    assert ValidationShape("cloud", None, shape.clean).scanned(0.01) is None
    assert ValidationShape("few", shape.mesh, shape.clean[:900]).scanned(0.01) is None
