import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from pointmend.network import dense
from pointmend.network.dense import WHOLE_CHUNK, Dense

COUNT = 3 * WHOLE_CHUNK
ROWS = torch.randn(COUNT, 24, generator=torch.Generator().manual_seed(0))

needs_onednn = pytest.mark.skipif(not dense._ONEDNN, reason="this PyTorch comes without oneDNN")


def plain(layer: Dense, x: Tensor) -> Tensor:
    return nn.functional.linear(x, layer.weight, layer.bias)


def products_by_onednn(layer: Dense, x: Tensor) -> int:
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        layer(x)
    return sum("_linear_pointwise" in event.key for event in seen.key_averages())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "x",
    [
        ROWS,
        ROWS[:0],
        ROWS[:37],
        ROWS[::3],
        ROWS.t().contiguous().t(),
        ROWS.reshape(16, COUNT // 16, 24),
    ],
    ids=["chunks", "none", "a few", "every third", "columns", "stacked"],
)
def test_product_is_the_plain_one(x: Tensor, bias: bool) -> None:
    layer = Dense(24, 16, bias=bias)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), plain(layer, x))


def test_weights_changed_since_count() -> None:
    layer = Dense(24, 16)
    with torch.no_grad():
        layer(ROWS)
        layer.weight.mul_(2.0)
        torch.testing.assert_close(layer(ROWS), plain(layer, ROWS))


def test_gradients_pass_while_something_is_learned() -> None:
    layer = Dense(24, 16)
    torch.autograd.backward(layer(ROWS).sum())
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, ROWS.sum(dim=0).expand(16, 24))


def test_double_precision_is_kept() -> None:
    layer = Dense(24, 16).double()
    with torch.no_grad():
        assert layer(ROWS.double()).dtype == torch.float64


@needs_onednn
def test_onednn_multiplies_whole_chunks_when_nothing_is_learned() -> None:
    layer = Dense(24, 16)
    assert products_by_onednn(layer, ROWS) == 0
    with torch.no_grad():
        assert products_by_onednn(layer, ROWS) == 1
        assert products_by_onednn(layer, ROWS[:-1]) == 0


def test_without_onednn_the_product_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Dense(24, 16)
    with torch.no_grad():
        by_either = layer(ROWS)
        monkeypatch.setattr(dense, "_ONEDNN", False)
        torch.testing.assert_close(layer(ROWS), by_either)
        assert products_by_onednn(layer, ROWS) == 0
