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


def mixed(network: ScoreNetwork, others: Sequence[ScoreNetwork]) -> ScoreNetwork:
    """
    The mean of several networks' weights.

    Branches of one trunk differ in what they do well; the mean of their weights keeps much of all,
    and lay nearer to the surface than any where it was measured (training/LOG.md). What only some
    are told is the mean of those that listen, so that it is heard as it was by them.
    """
    heard = [
        replace(
            other.config,
            told_noise=other.config.told_noise or network.config.told_noise,
            told_ways=other.config.told_ways or network.config.told_ways,
        )
        for other in others
    ]
    if any(config != network.config for config in heard):
        raise InputError("another network cannot be mixed in: name a model of the same one")
    states = [each.state_dict() for each in (network, *others)]
    mean = ScoreNetwork(network.config)
    mean.load_state_dict(
        {
            name: torch.stack([state[name] for state in states if name in state]).mean(dim=0)
            for name in states[0]
        }
    )
    return mean.eval()


def release(
    checkpoint: Path,
    target: Path,
    shapes: Sequence[ValidationShape],
    levels: Sequence[float] = LEVELS,
    after: Callable[[Score], None] = lambda score: None,
    calibrate_on: Sequence[ValidationShape] = (),
    calibrate_more: Sequence[ValidationShape] = (),
    calibrate_walls: Sequence[ValidationShape] = (),
    mix: Sequence[str] = (),
    processes: int = 1,
) -> ModelCard:
    """
    Write a checkpoint's averaged weights as a model, calibrated and validated.

    Parameters
    ----------
    target : where the model goes (.safetensors, with its .json card beside it).
    shapes : validation shapes; they decide the figures on the card.
    calibrate_on : shapes that decide the calibration, which needs many but costs little; the same
        when there are none.
    calibrate_more, calibrate_walls : shapes that take part in the fit of noise besides
        (`calibrate`).
    mix : models whose weights are mixed in (`mixed`): names in the box, or files; one that is named
        twice counts twice.
    processes : how many calibrate and validate at once.
    """
    network, facts = averaged_weights(checkpoint)
    if mix:
        others, cards = zip(*(load_model(name) for name in mix))
        network = mixed(network, others)
        origins = [{key: card.facts.get(key) for key in ORIGIN} for card in cards]
        facts = facts | {"mixed_with": origins}
    card = ModelCard(network.config)
    if shapes:
        device = torch.device("cpu")
        table = calibrate(
            Denoiser(network, card, device),
            calibrate_on or shapes,
            more=calibrate_more,
            walls=calibrate_walls,
            processes=processes,
        )
        card = ModelCard(network.config, table.to_dict(), facts)
        calibrated = Denoiser(network, card, device)
        scores = validate(calibrated, shapes, levels, after=after, processes=processes)
        facts = facts | {"validation": summarise(scores)}
    card = ModelCard(network.config, card.calibration, facts)
    save_model(target, network, card)
    return card
