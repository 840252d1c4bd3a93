"""Training: from a checkpoint to weights people can use: calibrate, validate, write the card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from pointmend.denoising.denoiser import Denoiser
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, save_model

from .checkpoint import read_checkpoint
from .validation import LEVELS, Score, ValidationShape, calibrate, summarise, validate


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


def release(
    checkpoint: Path,
    target: Path,
    shapes: Sequence[ValidationShape],
    levels: Sequence[float] = LEVELS,
    after: Callable[[Score], None] = lambda score: None,
    calibrate_on: Sequence[ValidationShape] = (),
) -> ModelCard:
    """
    Write a checkpoint's averaged weights as a model, calibrated and validated.

    Parameters
    ----------
    target : where the model goes (.safetensors, with its .json card beside it).
    shapes : validation shapes; they decide the figures on the card.
    calibrate_on : shapes that decide the calibration, which needs many but costs little; the same
        when there are none.
    """
    network, facts = averaged_weights(checkpoint)
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
