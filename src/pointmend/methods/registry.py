"""Methods: all of them by name, ready to compete."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from pointmend import __version__
from pointmend.denoising.denoiser import Denoiser
from pointmend.denoising.options import SamplerOptions
from pointmend.errors import InputError

from .bilateral import BilateralSmoothing
from .glr import GraphLaplacian
from .jet import JetSmoothing
from .method import Contestant, Method
from .mls import MovingLeastSquares
from .ours import Ours
from .sbd import SBD, AdaptiveSBD
from .sbd_network import load_sbd
from .trivial import Identity, Oracle
from .wlop import Wlop

SBD_WEIGHTS = Path("peers") / "sbd.safetensors"

# Methods that need nothing but the cloud.
PLAIN: dict[str, Callable[[], Method]] = {
    "identity": Identity,
    "oracle": Oracle,
    "jet": JetSmoothing,
    "bilateral": BilateralSmoothing,
    # CGAL's radius of 8 spacings is made for thinning a cloud; with all points kept it shrinks.
    "wlop": lambda: Wlop(spacings=3.0),
    "mls": MovingLeastSquares,
    "glr": GraphLaplacian,
}
METHODS = (*PLAIN, "sbd", "sbd+our", "pointmend", "pointmend+spread")


def contestants(
    names: Sequence[str], *, data: Path | None = None, model: str = "default", steps: int = 5
) -> list[Contestant]:
    """
    Methods by name, in the order asked for.

    Parameters
    ----------
    names : of METHODS.
    data : folder that holds peers/sbd.safetensors, for SBD.
    model, steps : weights and L of pointmend.
    """
    return [contestant(name, data=data, model=model, steps=steps) for name in names]


def contestant(
    name: str, *, data: Path | None = None, model: str = "default", steps: int = 5
) -> Contestant:
    """One method by name."""
    if name in PLAIN:
        method = PLAIN[name]()
        return Contestant(method, repr(method))
    if name in ("sbd", "sbd+our"):
        weights = sbd_weights(data)
        network = load_sbd(weights)
        peer: Method = SBD(network) if name == "sbd" else AdaptiveSBD(network)
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:24]
        return Contestant(peer, f"{name} {digest}")
    if name == "pointmend":
        return our_contestant(model, steps=steps)
    if name == "pointmend+spread":
        return our_contestant(model, steps=steps, spread=True, name=name)
    raise InputError(f"unknown method {name!r}; choose one of {', '.join(METHODS)}")


def sbd_weights(data: Path | None) -> Path:
    """Where SBD's published weights are, or a line saying where they should be."""
    path = None if data is None else data / SBD_WEIGHTS
    if path is None or not path.is_file():
        place = path or f"DATA/{SBD_WEIGHTS}"
        raise InputError(f"SBD's published weights are not there: {place}; leave out sbd")
    return path


def our_contestant(
    model: str | Path = "default",
    *,
    options: SamplerOptions | None = None,
    steps: int = 5,
    eta: float = 0.0,
    spread: bool = False,
    name: str = "pointmend",
) -> Contestant:
    """Our denoiser with any weights and any setting of the sampler."""
    denoiser = Denoiser.load(model, device="cpu", options=options)
    card = denoiser.card
    settings = (__version__, card.network, card.calibration, denoiser.options)
    content = hashlib.sha256(repr(settings).encode())
    for key, tensor in sorted(denoiser.network.state_dict().items()):
        content.update(key.encode())
        content.update(tensor.numpy().tobytes())
    signature = f"pointmend {content.hexdigest()[:24]} L {steps} eta {eta:g}"
    signature += " spread" if spread else ""
    return Contestant(Ours(denoiser, steps, eta, spread, name), signature)
