import json
from pathlib import Path

import pytest
import torch

from pointmend.errors import InputError
from pointmend.network.config import NetworkConfig
from pointmend.network.score import ScoreNetwork
from pointmend.network.weights import ModelCard, load_model, save_model, shipped_models

CONFIG = NetworkConfig(channels=8, hidden=8, layers=1, blocks=1)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "mine.safetensors"
    save_model(path, ScoreNetwork(CONFIG), ModelCard(CONFIG, {"reading": [1.0], "level": [1.0]}))
    return path


def test_a_saved_model_comes_back_as_it_was(saved: Path) -> None:
    torch.manual_seed(0)
    original = ScoreNetwork(CONFIG)
    network, card = load_model(saved)
    assert card.network == CONFIG
    assert card.calibration == {"reading": [1.0], "level": [1.0]}
    for name, tensor in original.state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name])


def test_the_box_holds_a_default_and_its_predecessor() -> None:
    assert shipped_models() == ["default", "release-7"]
    patches = {}
    for name in shipped_models():
        network, card = load_model(name)
        assert card.calibration is not None
        assert not network.training
        patches[name] = card.facts["patches"]
    assert patches["release-7"] < patches["default"]


def test_errors_say_what_is_wrong(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model named"):
        load_model("nonsense")
    with pytest.raises(InputError, match="cannot read"):
        load_model(tmp_path / "absent.safetensors")
    card = saved.with_suffix(".json")
    values = json.loads(card.read_text())
    card.write_text(json.dumps(values | {"network": values["network"] | {"depth": 3}}))
    with pytest.raises(InputError, match="depth"):
        load_model(saved)
    card.write_text(json.dumps(values | {"network": values["network"] | {"channels": 9}}))
    with pytest.raises(InputError, match="not a pointmend model"):
        load_model(saved)
    card.write_text("{")
    with pytest.raises(InputError, match="not a pointmend model"):
        load_model(saved)
    card.write_text(json.dumps(values))
    saved.write_bytes(b"\x00" * 100)
    with pytest.raises(InputError, match="not a pointmend model"):
        load_model(saved)
