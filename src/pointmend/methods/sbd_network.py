"""Methods: SBD's published score network (ICCV 2021), laid out for fast evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pointmend.errors import InputError

UNITS = 4
BLOCKS = 4
NEIGHBOURS = 16
CHANNELS = 24
GROWTH = 12
FEATURES = 3 * GROWTH + CHANNELS
HIDDEN = 128
BATCH_NORM_EPSILON = 1e-5

# Rows the score network takes at once: what it writes in between stays in the processor's cache.
ROWS_AT_ONCE = 1000


def tensor_shapes() -> dict[str, tuple[int, ...]]:
    """The shape of every tensor the network is made of, by its published name."""
    given = 3 + FEATURES
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, inputs: int, outputs: int, *kernel: int) -> None:
        shapes[f"{name}.weight"] = (outputs, inputs, *kernel)
        shapes[f"{name}.bias"] = (outputs,)

    def batch_norm(name: str) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{part}"] = (HIDDEN,)

    for unit in range(UNITS):
        linear(f"feature_net.transforms.{unit}.linear", FEATURES if unit else 3, CHANNELS)
        conv = f"feature_net.convs.{unit}"
        linear(f"{conv}.layer_first.linear", 3 * CHANNELS if unit else CHANNELS, GROWTH)
        linear(f"{conv}.layers.0.linear", GROWTH + CHANNELS, GROWTH)
        linear(f"{conv}.layer_last.linear", 2 * GROWTH + CHANNELS, GROWTH)
    linear("score_net.conv_p", given, HIDDEN, 1)
    for block in range(BLOCKS):
        name = f"score_net.blocks.{block}"
        batch_norm(f"{name}.bn_0")
        batch_norm(f"{name}.bn_1")
        linear(f"{name}.fc_0", HIDDEN, HIDDEN, 1)
        linear(f"{name}.fc_1", HIDDEN, HIDDEN, 1)
        linear(f"{name}.fc_c", given, HIDDEN, 1)
    batch_norm("score_net.bn_out")
    linear("score_net.conv_out", HIDDEN, 3, 1)
    return shapes


@dataclass(frozen=True)
class DenseEdgeUnit:
    """
    A linear map to 24 channels, then a dense edge convolution over 16 neighbours.

    Every layer sees edges [x_i, x_j, x_j - x_i] and earlier results; what depends on one point
    alone is computed before the neighbours are gathered.

    Attributes
    ----------
    transform : weight (C, 24) and bias (24,) of the map before the convolution.
    own : weight (24, 36) and bias (36,) of what x_i adds to each of the three layers.
    other : (24, 12) what x_j adds to the first layer.
    second : (12, 12) from the first layer to the second.
    third : (24, 12) from the second and the first layer to the third.
    rectified : whether the transform ends with a ReLU.
    """

    transform: tuple[Tensor, Tensor]
    own: tuple[Tensor, Tensor]
    other: Tensor
    second: Tensor
    third: Tensor
    rectified: bool

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], number: int) -> DenseEdgeUnit:
        """Split the published layers of unit `number`."""
        conv = f"feature_net.convs.{number}"
        names = (f"{conv}.layer_first", f"{conv}.layers.0", f"{conv}.layer_last")
        first, second, third = (_matrix(tensors, f"{name}.linear") for name in names)
        if number == 0:  # sees the difference x_j - x_i alone
            first_own, other = -first[0], first[0]
        else:
            at_own, at_other, at_difference = first[0].chunk(3)
            first_own, other = at_own - at_difference, at_other + at_difference
        own = torch.cat([first_own, second[0][GROWTH:], third[0][2 * GROWTH :]], dim=1)
        bias = torch.cat([first[1], second[1], third[1]])
        return cls(
            transform=_matrix(tensors, f"feature_net.transforms.{number}.linear"),
            own=(own, bias),
            other=other.contiguous(),
            second=second[0][:GROWTH].contiguous(),
            third=third[0][: 2 * GROWTH].contiguous(),
            rectified=number > 0,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """From features (N, C) to features (N, 60)."""
        x = torch.addmm(self.transform[1], x, self.transform[0])
        if self.rectified:
            x = x.relu_()
        index = nearest_features(x, NEIGHBOURS)
        count, k = index.shape
        own = torch.addmm(self.own[1], x, self.own[0])[:, None]
        own_first, own_second, own_third = own.chunk(3, dim=2)
        layers = x.new_empty(count, k, 2 * GROWTH)  # second and first, side by side
        second, first = layers.chunk(2, dim=2)
        neighbour = (x @ self.other).index_select(0, index.reshape(-1)).reshape(count, k, -1)
        torch.add(neighbour, own_first, out=first)
        first.relu_()
        torch.add(first @ self.second, own_second, out=second)
        second.relu_()
        third = (layers.reshape(count * k, -1) @ self.third).reshape(count, k, GROWTH)
        # What x_i adds to the last layer is the same for all edges: after the maximum is enough.
        return torch.cat([third.amax(dim=1) + own_third[:, 0], layers.amax(dim=1), x], dim=1)


def nearest_features(x: Tensor, k: int) -> Tensor:
    """
    Each row's k nearest other rows, in no order.

    Parameters
    ----------
    x : (N, C) on the CPU.
    k : neighbours wanted; fewer when there are fewer other rows. A single row is its own.

    Returns
    -------
    (N, min(k, N - 1)) int64, or (1, 1) zeros.
    """
    count = len(x)
    if count == 1:
        return torch.zeros((1, 1), dtype=torch.int64)
    x = x - x.mean(dim=0)  # a common offset would cost digits of the distances
    squared = x.square().sum(dim=1)
    # |x_j|^2 - 2 x_i.x_j orders the x_j as the distance to x_i does.
    order_by = torch.addmm(squared, x, x.T, alpha=-2.0)
    order_by.fill_diagonal_(torch.inf)
    wanted = min(k, count - 1)
    index = np.argpartition(order_by.numpy(), wanted - 1, axis=1)[:, :wanted]
    return torch.from_numpy(np.ascontiguousarray(index))


@dataclass(frozen=True)
class ScoreBlock:
    """
    A residual block: fc_1(ReLU(bn_1(fc_0(ReLU(bn_0(net)))))) + fc_c([p, c]).

    Attributes
    ----------
    norm : factor and shift (128,) of bn_0.
    first : weight (128, 128) and bias (128,) of fc_0 with bn_1 in it.
    last : (131, 128) fc_1, and below it what the position p adds by fc_c.
    """

    norm: tuple[Tensor, Tensor]
    first: tuple[Tensor, Tensor]
    last: Tensor

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], number: int, position: Tensor
    ) -> ScoreBlock:
        """Block `number`, with the position's part (3, 128) of its fc_c."""
        name = f"score_net.blocks.{number}"
        factor, shift = _batch_norm(tensors, f"{name}.bn_1")
        weight, bias = _matrix(tensors, f"{name}.fc_0")
        return cls(
            norm=_batch_norm(tensors, f"{name}.bn_0"),
            first=((weight * factor).contiguous(), bias * factor + shift),
            last=torch.cat([_matrix(tensors, f"{name}.fc_1")[0], position]),
        )


@dataclass(frozen=True)
class SBDNetwork:
    """
    The two networks of SBD in evaluation mode on the CPU.

    Attributes
    ----------
    units : the feature network.
    entry : (3, 128) what the position p adds by conv_p.
    condition : weight (60, 640) and bias (640,) of what the features add to all layers.
    blocks : the score network's residual blocks.
    norm : factor and shift (128,) of bn_out.
    exit : weight (128, 3) and bias (3,) of conv_out.
    """

    units: tuple[DenseEdgeUnit, ...]
    entry: Tensor
    condition: tuple[Tensor, Tensor]
    blocks: tuple[ScoreBlock, ...]
    norm: tuple[Tensor, Tensor]
    exit: tuple[Tensor, Tensor]

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> SBDNetwork:
        """
        Build the network from tensors by their published names.

        Raises
        ------
        InputError
            Naming the first tensor that is missing or has another shape.
        """
        for name, shape in tensor_shapes().items():
            if name not in tensors:
                raise InputError(f"not SBD's network: no tensor {name}")
            found = tuple(tensors[name].shape)
            if found != shape:
                raise InputError(f"not SBD's network: {name} has shape {found}, not {shape}")
        tensors = {name: tensor.detach().float() for name, tensor in tensors.items()}
        entry, *by_block = _layers_that_see_features(tensors)
        return cls(
            units=tuple(DenseEdgeUnit.from_tensors(tensors, i) for i in range(UNITS)),
            entry=entry[0][:3].contiguous(),
            condition=(
                torch.cat([weight[3:] for weight, _ in (entry, *by_block)], dim=1),
                torch.cat([bias for _, bias in (entry, *by_block)]),
            ),
            blocks=tuple(
                ScoreBlock.from_tensors(tensors, i, weight[:3])
                for i, (weight, _) in enumerate(by_block)
            ),
            norm=_batch_norm(tensors, "score_net.bn_out"),
            exit=_matrix(tensors, "score_net.conv_out"),
        )

    @torch.inference_mode()
    def features(self, patch: Tensor) -> Tensor:
        """
        Features of a patch's points.

        Parameters
        ----------
        patch : (N, 3) float32, N >= 1, in the frame of the cloud's unit sphere: the features
            know where in it a point lies.

        Returns
        -------
        (N, 60)
        """
        x = patch
        for unit in self.units:
            x = unit(x)
        return x

    @torch.inference_mode()
    def conditions(self, features: Tensor) -> Tensor:
        """What features (M, 60) add to conv_p and the four blocks: (M, 640), for any positions."""
        return torch.addmm(self.condition[1], features, self.condition[0])

    @torch.inference_mode()
    def scores(self, conditions: Tensor, viewers: Tensor, offsets: Tensor) -> Tensor:
        """
        Scores of positions, each as one point with its features sees it.

        Parameters
        ----------
        conditions : (M, 640) of M points.
        viewers : (Q,) int64, which point sees the position.
        offsets : (Q, 3) float32, the position relative to that point.

        Returns
        -------
        (Q, 3) the estimated way from the position to the surface.
        """
        scores = torch.empty_like(offsets)
        for first in range(0, len(viewers), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            # Several times faster than conditions[viewers].
            given = conditions.index_select(0, viewers[rows])
            scores[rows] = self._few_scores(given, offsets[rows])
        return scores

    def _few_scores(self, given: Tensor, offsets: Tensor) -> Tensor:
        """Scores (Q, 3) of offsets (Q, 3), given the conditions (Q, 640) of those who see them."""
        at_entry, *at_blocks = given.chunk(1 + BLOCKS, dim=1)
        net = torch.addmm(at_entry, offsets, self.entry)
        buffer = torch.empty_like(net)
        beside = net.new_empty(len(net), HIDDEN + 3)
        beside[:, HIDDEN:] = offsets
        hidden = beside[:, :HIDDEN]
        for block, at_block in zip(self.blocks, at_blocks):
            torch.addcmul(block.norm[1], net, block.norm[0], out=buffer)
            torch.addmm(block.first[1], buffer.relu_(), block.first[0], out=hidden)
            hidden.relu_()
            net += at_block
            net.addmm_(beside, block.last)
        torch.addcmul(self.norm[1], net, self.norm[0], out=buffer)
        return torch.addmm(self.exit[1], buffer.relu_(), self.exit[0])


def load_sbd(path: Path) -> SBDNetwork:
    """
    Load the published network.

    Parameters
    ----------
    path : a safetensors file with the tensors by their published names; others are ignored.
    """
    try:
        return SBDNetwork.from_tensors(load_file(path))
    except OSError as error:
        raise InputError(f"cannot read SBD's network {path}: {error.strerror or error}") from error
    except SafetensorError as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from error
    except InputError as error:
        raise InputError(f"{path} is {error}") from error


def _matrix(tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    """Weight (inputs, outputs) and bias (outputs,) of a layer."""
    weight = tensors[f"{name}.weight"]
    return weight.reshape(weight.shape[:2]).T.contiguous(), tensors[f"{name}.bias"]


def _batch_norm(tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    """Factor and shift (128,) of a batch normalisation in evaluation mode."""
    deviation = torch.sqrt(tensors[f"{name}.running_var"] + BATCH_NORM_EPSILON)
    factor = tensors[f"{name}.weight"] / deviation
    return factor, tensors[f"{name}.bias"] - factor * tensors[f"{name}.running_mean"]


def _layers_that_see_features(tensors: Mapping[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Weight (63, 128) and bias (128,) of conv_p, and of each block's fc_c with fc_1's bias."""
    layers = [_matrix(tensors, "score_net.conv_p")]
    for block in range(BLOCKS):
        weight, bias = _matrix(tensors, f"score_net.blocks.{block}.fc_c")
        # Both biases go straight into the sum.
        layers.append((weight, bias + tensors[f"score_net.blocks.{block}.fc_1.bias"]))
    return layers
