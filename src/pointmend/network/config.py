"""Network: one typed configuration for the network; every ablation of Table 3 is a value in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pointmend.errors import InputError
from pointmend.geometry.planes import TAIL_SCALES, PlaneScales
from pointmend.settings import check_choices, check_keys

Fusion = Literal["learned", "initial", "current", "mean"]
GradientWeights = Literal["softmax", "constant"]
Frame = Literal["centred", "patch", "point"]

PLANE_INPUTS = 15  # per scale

# Walks over which tails are taken: about a hundred points, as many as it takes to tell.
TAIL_WALKS = 4


@dataclass(frozen=True)
class NetworkConfig:
    """
    The network's sizes and choices.

    Attributes
    ----------
    frame : "centred" as the paper (positions relative to the patch's centre); "patch": the patch
        turned so that its normal points up; "point": every point sees its surroundings in axes
        of its own, so that the result turns with the cloud exactly.
    planes : feed planes fitted at several scales to E, and let them vote in G.
    plane_neighbours, plane_walks : their neighbourhoods, and those of the frames (`PlaneScales`).
    curved : let the curved surfaces that pairs of planes lead to take part as well. Needs planes.
    tails : tell E how heavy the tails of the points' distances from their planes are, which tells
        thin walls from wide noise. Needs planes.
    channels : width of the features E and F.
    layers : dynamic edge convolutions of E.
    graph_neighbours : neighbours of an edge convolution, the nearest in feature space.
    graph_candidates : spatial neighbours they are chosen among; 0 takes the whole patch (DGCNN,
        the paper). A limit makes the network local, so that a cloud needs no patches; as many
        as graph_neighbours, or fewer, makes the graph the same in every layer.
    offset_neighbours, offset_channels : the first, spatial layer of E, with a limit.
    fusion : F as in the paper ("learned"), or Table 3's F_T ("initial"), F_t ("current") and
        F_{t+T} ("mean").
    told_noise : tell G how far x^T lies from its planes against its noise, where that is known: a
        thin wall and wider noise on one side look the same to who does not know. Needs planes.
    told_ways : tell G what the points around v have been moved by together since x^T, and let it
        give a share of that back: noise moves neighbours every way, so what they have in common
        was shape. Needs the frame "point".
    gradient_neighbours : k of Eq. 11-12; 1 is Table 3's "w/o GF".
    gradient_weights : softmax (Eq. 12), or Table 3's "GF(const)".
    mutual : G sees both ends of a pair: also the feature of v itself, what v's own planes say of
        x_i, and how far both normals agree, so that it can tell the other side of an edge or of a
        thin sheet. The paper's G knows x_i alone. Needs planes.
    hidden, blocks : width and residual blocks of G.
    """

    frame: Frame = "centred"
    planes: bool = False
    plane_neighbours: int = 48
    plane_walks: tuple[int, ...] = (1, 2, 4)
    curved: bool = False
    tails: bool = False
    channels: int = 64
    layers: int = 4
    graph_neighbours: int = 16
    graph_candidates: int = 0
    offset_neighbours: int = 32
    offset_channels: int = 24
    fusion: Fusion = "learned"
    told_noise: bool = False
    told_ways: bool = False
    gradient_neighbours: int = 32
    gradient_weights: GradientWeights = "softmax"
    mutual: bool = False
    hidden: int = 64
    blocks: int = 4

    def __post_init__(self) -> None:
        check_choices(self, "network")
        for name in ("mutual", "curved", "tails", "told_noise"):
            if getattr(self, name) and not self.planes:
                raise InputError(f"network.{name} looks at planes: set network.planes as well")
        if self.told_ways and self.frame != "point":
            raise InputError('network.told_ways needs network.frame="point"')

    @property
    def neighbours(self) -> int:
        """Spatial neighbours that have to be found for every point."""
        planes = self.plane_neighbours if self.planes or self.frame == "point" else 0
        offsets = self.offset_neighbours if self.graph_candidates else 0
        first_graph = self.graph_neighbours + 1
        return max(planes, offsets, first_graph, self.graph_candidates, self.gradient_neighbours)

    @property
    def scales(self) -> PlaneScales:
        """The neighbourhoods planes are fitted to."""
        return PlaneScales(self.plane_neighbours, self.plane_walks, TAIL_WALKS if self.tails else 0)

    @property
    def plane_scales(self) -> int:
        """Number of planes every point has; 0 when none are looked at."""
        return len(self.scales) if self.planes else 0

    @property
    def tail_scales(self) -> int:
        """Number of scales whose tails are told; 0 when none are."""
        return TAIL_SCALES if self.tails else 0

    @property
    def curved_scales(self) -> int:
        """Number of curved surfaces every point has; 0 when they take no part."""
        return len(self.scales) - 1 if self.curved else 0

    @property
    def plane_inputs(self) -> int:
        """Numbers that E is told about the planes of a point."""
        inputs = PLANE_INPUTS * len(self.scales) + self.curved_scales
        return inputs + self.tail_scales

    @property
    def is_local(self) -> bool:
        """Whether a point's score depends on its surroundings alone, so that patches can grow."""
        return self.graph_candidates > 0 and self.frame == "point"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NetworkConfig:
        """Build from plain values; an unknown key is an error, not a silent default."""
        check_keys(cls, values, "network")
        known = dict(values)
        if "plane_walks" in known:
            known["plane_walks"] = tuple(known["plane_walks"])  # JSON knows lists only
        return cls(**known)


# The network as the paper describes it, at a width two cores can train.
PAPER = NetworkConfig()

# The network of new runs: see training/LOG.md for what decided each value. The shipped one has
# learned to be told the noise besides.
DEFAULT = replace(
    PAPER,
    frame="point",
    planes=True,
    plane_neighbours=32,
    plane_walks=(1, 2, 4, 8),
    curved=True,
    tails=True,
    mutual=True,
    layers=2,
    graph_candidates=16,
    offset_neighbours=16,
    offset_channels=16,
    gradient_neighbours=8,
)
