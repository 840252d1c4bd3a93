"""Network: weights on disk, safetensors and a JSON card beside them; never pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from pointmend.errors import InputError

from .config import NetworkConfig
from .score import ScoreNetwork

SHIPPED = Path(__file__).resolve().parent.parent / "weights"


@dataclass(frozen=True)
class ModelCard:
    """
    What is known about a set of weights.

    Attributes
    ----------
    network : the configuration the weights belong to.
    calibration : the noise estimator's table, as plain values.
    facts : where they come from: data, patches seen, CPU hours, validation.
    """

    network: NetworkConfig
    calibration: dict[str, Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "network": self.network.to_dict(),
            "calibration": self.calibration,
            "facts": self.facts,
        }


def shipped_models() -> list[str]:
    """Names of the weights in the box."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def save_model(path: Path, network: ScoreNetwork, card: ModelCard) -> None:
    """Write `path` (.safetensors) and its card (.json) beside it."""
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    path.with_suffix(".safetensors").write_bytes(save(tensors))
    path.with_suffix(".json").write_text(json.dumps(card.to_dict(), indent=1) + "\n")


def weights_file(name: str | Path) -> Path:
    """Where the weights are that have a name in the box, or a path."""
    path = Path(name)
    if path.suffix in (".safetensors", ".json"):
        return path.with_suffix(".safetensors")
    path = SHIPPED / f"{name}.safetensors"
    if not path.is_file():
        known = ", ".join(shipped_models())
        raise InputError(f"no model named {str(name)!r}; give a .safetensors file or: {known}")
    return path


def load_model(name: str | Path = "default") -> tuple[ScoreNetwork, ModelCard]:
    """
    Load a network by the name of shipped weights or by path.

    Parameters
    ----------
    name : "default", another name in the box, or the path of a .safetensors file with its .json.

    Returns
    -------
    The network in evaluation mode on the CPU, and its card.
    """
    path = weights_file(name)
    try:
        values = json.loads(path.with_suffix(".json").read_text())
        network_config = NetworkConfig.from_dict(values["network"])
        card = ModelCard(network_config, values.get("calibration"), values.get("facts", {}))
        network = ScoreNetwork(network_config)
        network.load_state_dict(load_file(path))
    except OSError as error:
        raise InputError(f"cannot read the model {path}: {error.strerror or error}") from error
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a pointmend model: {reason}") from error
    return network.eval(), card
