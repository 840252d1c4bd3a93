from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import batch_norm, linear

from pointmend.errors import InputError
from pointmend.methods import sbd_network
from pointmend.methods.sbd_network import (
    SBDNetwork,
    load_sbd,
    nearest_features,
    tensor_shapes,
)


def random_tensors(seed: int = 0) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in tensor_shapes().items():
        tensor = torch.randn(shape, generator=random)
        if name.endswith("running_var"):
            tensor = tensor.abs() + 0.5
        elif len(shape) > 1:
            tensor /= shape[1] ** 0.5
        tensors[name] = tensor
    return tensors


def literal_linear(tensors: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    weight = tensors[f"{name}.weight"]
    return linear(x, weight.reshape(weight.shape[:2]), tensors[f"{name}.bias"])


def literal_norm(tensors: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    mean, variance = tensors[f"{name}.running_mean"], tensors[f"{name}.running_var"]
    return batch_norm(x, mean, variance, tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def literal_features(tensors: dict[str, Tensor], patch: Tensor) -> Tensor:
    """The feature network edge by edge."""
    x = patch
    for unit in range(4):
        x = literal_linear(tensors, f"feature_net.transforms.{unit}.linear", x)
        if unit > 0:
            x = torch.relu(x)
        rows = []
        for i in range(len(x)):
            distance = (x.double() - x[i].double()).norm(dim=1).tolist()
            others = [j for j in range(len(x)) if j != i] or [i]
            edges = []
            for j in sorted(others, key=distance.__getitem__)[:16]:
                edge = x[j] - x[i] if unit == 0 else torch.cat([x[i], x[j], x[j] - x[i]])
                conv = f"feature_net.convs.{unit}"
                y1 = torch.relu(literal_linear(tensors, f"{conv}.layer_first.linear", edge))
                y = torch.cat([y1, x[i]])
                y = torch.cat(
                    [torch.relu(literal_linear(tensors, f"{conv}.layers.0.linear", y)), y]
                )
                y = torch.cat([literal_linear(tensors, f"{conv}.layer_last.linear", y), y])
                edges.append(y)
            rows.append(torch.stack(edges).max(dim=0).values)
        x = torch.stack(rows)
    return x


def literal_scores(tensors: dict[str, Tensor], features: Tensor, offsets: Tensor) -> Tensor:
    """The score network layer by layer, on (Q, 60) and (Q, 3)."""
    given = torch.cat([offsets, features], dim=1)
    net = literal_linear(tensors, "score_net.conv_p", given)
    for block in range(4):
        name = f"score_net.blocks.{block}"
        dx = torch.relu(literal_norm(tensors, f"{name}.bn_0", net))
        dx = torch.relu(
            literal_norm(tensors, f"{name}.bn_1", literal_linear(tensors, f"{name}.fc_0", dx))
        )
        net = net + literal_linear(tensors, f"{name}.fc_1", dx)
        net = net + literal_linear(tensors, f"{name}.fc_c", given)
    out = torch.relu(literal_norm(tensors, "score_net.bn_out", net))
    return literal_linear(tensors, "score_net.conv_out", out)


@pytest.mark.parametrize("count", [1, 2, 5, 17, 60])
def test_features_are_those_of_the_network_taken_literally(count: int) -> None:
    tensors = random_tensors()
    patch = torch.randn(count, 3, generator=torch.Generator().manual_seed(1)) * 0.2 + 0.6
    found = SBDNetwork.from_tensors(tensors).features(patch)
    expected = literal_features(tensors, patch)
    assert found.shape == (count, 60)
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_scores_are_those_of_the_network_taken_literally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbd_network, "ROWS_AT_ONCE", 100)
    tensors = random_tensors(2)
    random = torch.Generator().manual_seed(3)
    features = torch.randn(50, 60, generator=random)
    rows = torch.randint(50, (230,), generator=random)
    offsets = torch.randn(230, 3, generator=random)
    network = SBDNetwork.from_tensors(tensors)
    found = network.scores(network.conditions(features), rows, offsets)
    expected = literal_scores(tensors, features[rows], offsets)
    assert found.shape == (230, 3)
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


def test_no_position_no_score() -> None:
    network = SBDNetwork.from_tensors(random_tensors())
    conditions = network.conditions(torch.zeros(3, 60))
    none = torch.zeros(0, dtype=torch.int64)
    assert network.scores(conditions, none, torch.zeros(0, 3)).shape == (0, 3)


@pytest.mark.parametrize(("count", "k"), [(2, 16), (10, 16), (17, 16), (80, 16), (80, 1)])
def test_neighbours_are_the_nearest_other_rows(count: int, k: int) -> None:
    x = 100.0 + torch.randn(count, 24, generator=torch.Generator().manual_seed(count))
    found = nearest_features(x, k)
    assert found.shape == (count, min(k, count - 1))
    for i, row in enumerate(found.tolist()):
        distance = (x.double() - x[i].double()).norm(dim=1)
        others = [j for j in range(count) if j != i]
        assert sorted(row) == sorted(sorted(others, key=lambda j: float(distance[j]))[:k])


def test_of_rows_in_one_place_each_is_another() -> None:
    found = nearest_features(torch.ones(30, 24), 16).numpy()
    assert all(i not in row and len(set(row)) == 16 for i, row in enumerate(found))
    assert nearest_features(torch.ones(1, 24), 16).tolist() == [[0]]


def test_a_file_comes_back_as_the_network_it_holds(tmp_path: Path) -> None:
    tensors = random_tensors(4)
    beside = {"score_net.bn_out.num_batches_tracked": torch.tensor(7)}
    save_file(tensors | beside, tmp_path / "sbd.safetensors")
    patch = torch.from_numpy(np.random.default_rng(0).random((20, 3))).float()
    found = load_sbd(tmp_path / "sbd.safetensors").features(patch)
    assert torch.equal(found, SBDNetwork.from_tensors(tensors).features(patch))


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "sbd.safetensors"
    with pytest.raises(InputError, match=r"cannot read SBD's network .*sbd\.safetensors"):
        load_sbd(path)
    path.write_bytes(b"\x00" * 100)
    with pytest.raises(InputError, match="not a safetensors file"):
        load_sbd(path)
    tensors = random_tensors()
    save_file({**tensors, "score_net.conv_out.bias": torch.zeros(4)}, path)
    with pytest.raises(InputError, match=r"conv_out\.bias has shape \(4,\), not \(3,\)"):
        load_sbd(path)
    del tensors["score_net.blocks.3.fc_c.bias"]
    save_file(tensors, path)
    with pytest.raises(InputError, match=r"sbd\.safetensors is not SBD's .*blocks\.3\.fc_c\.bias"):
        load_sbd(path)
