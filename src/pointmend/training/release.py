"""Training: from a checkpoint to weights people can use: calibrate, validate, write the card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.errors import InputError
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, load_model, save_model

from .checkpoint import read_checkpoint
from .validation import LEVELS, Score, ValidationShape, calibrate, summarise, validate

# What a card tells of weights that were mixed in.
ORIGIN = ("patches", "steps", "cpu_hours", "revision")


def averaged_weights(checkpoint: Path) -> tuple[ScoreNetwork, dict[str, Any]]:
    """The averaged network of a checkpoint, and the facts its card will state."""
    tensors, state = read_checkpoint(checkpoint)
    network = ScoreNetwork(state.training_config.network)
    network.load_state_dict(
        {n.removeprefix("average."): t for n, t in tensors.items() if n.startswith("average.")}
    )
    facts = {
        "training": state.config,
        "patches": state.patches,
        "steps": state.step,
        "cpu_hours": round(state.cpu_seconds / 3600.0, 2),
        "data": state.data,
        "revision": state.revision,
    }
    return network.eval(), facts


def mixed(network: ScoreNetwork, other: ScoreNetwork) -> ScoreNetwork:
    """
    The mean of two networks' weights.

    Branches of one trunk differ in what they do well; the mean of their weights keeps much of both,
    and lay nearer to the surface than either where it was measured (training/LOG.md). What only the
    first is told it goes on hearing as it did.
    """
    if other.config not in (network.config, replace(network.config, told_noise=False)):
        raise InputError("another network cannot be mixed in: name a model of the same one")
    mean = ScoreNetwork(network.config)
    of_other = other.state_dict()
    mean.load_state_dict(
        {name: 0.5 * (own + of_other.get(name, own)) for name, own in network.state_dict().items()}
    )
    return mean.eval()


def release(
    checkpoint: Path,
    target: Path,
    shapes: Sequence[ValidationShape],
    levels: Sequence[float] = LEVELS,
    after: Callable[[Score], None] = lambda score: None,
    calibrate_on: Sequence[ValidationShape] = (),
    mix: str | None = None,
) -> ModelCard:
    """
    Write a checkpoint's averaged weights as a model, calibrated and validated.

    Parameters
    ----------
    target : where the model goes (.safetensors, with its .json card beside it).
    shapes : validation shapes; they decide the figures on the card.
    calibrate_on : shapes that decide the calibration, which needs many but costs little; the same
        when there are none.
    mix : a model whose weights are mixed in (`mixed`): a name in the box, or a file.
    """
    network, facts = averaged_weights(checkpoint)
    if mix is not None:
        other, its_card = load_model(mix)
        network = mixed(network, other)
        told = {key: its_card.facts[key] for key in ORIGIN if key in its_card.facts}
        facts = facts | {"mixed_with": told}
    card = ModelCard(network.config)
    if shapes:
        device = torch.device("cpu")
        table = calibrate(Denoiser(network, card, device), calibrate_on or shapes)
        card = ModelCard(network.config, table.to_dict(), facts)
        scores = validate(Denoiser(network, card, device), shapes, levels, after=after)
        facts = facts | {"validation": summarise(scores)}
    card = ModelCard(network.config, card.calibration, facts)
    save_model(target, network, card)
    return card
