"""Training: AdamW or Muon with warm-up, constant phase, cool-down, clipping, averaged weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pointmend.network.score import ScoreNetwork

from .config import TrainingConfig

BETAS = (0.9, 0.99)
# Steps of Muon are as long as AdamW's at the same rate; it learned best with twice that.
RATES = {"adam": 1.0, "muon": 2.0}

# Layers that meet geometry or answer with it have rows of different meaning and size, which Muon
# would level; it is made for the matrices between them.
EDGE_LAYERS = (
    "extraction.offsets.edge.0.",
    "extraction.positions.",
    "extraction.planes.0.",
    "fusion.place.0.",
    "gradient.offset.",
    "gradient.told.",
    "gradient.ways.",
    "gradient.returned.",
    "gradient.output.",
)

# Layers that a network can be given later, or more of: scores do not hear them in the beginning.
LATER_LAYERS = (
    "extraction.convolutions.",
    "gradient.blocks.",
    "gradient.told.",
    "gradient.ways.",
    "gradient.returned.",
)

# How fast the running gradient norm follows: it has to outlive a spike, not a change of phase.
NORM_MEMORY = 0.98


class Optimiser:
    """
    Updates a network and keeps the moving average of its weights.

    Attributes
    ----------
    step : updates taken.
    norm : running gradient norm; 0 before the first step.
    skipped : steps left out because the gradient was not finite.
    average : the averaged weights, by parameter name.
    begun : the step at which parameters came that the checkpoint did not have, by name.
    """

    def __init__(self, network: ScoreNetwork, config: TrainingConfig) -> None:
        self.network = network
        self.config = config
        self.step = 0
        self.norm = 0.0
        self.skipped = 0
        self.begun: dict[str, int] = {}
        inner: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in network.named_parameters():
            by_muon = config.optimiser == "muon" and _is_inner(name, parameter)
            (inner if by_muon else others).append(parameter)
        decay = config.weight_decay
        self.methods: dict[str, torch.optim.Optimizer] = {
            "adam": torch.optim.AdamW(others, lr=0.0, betas=BETAS, weight_decay=decay)
        }
        if inner:
            self.methods["muon"] = torch.optim.Muon(
                inner, lr=0.0, weight_decay=decay, adjust_lr_fn="match_rms_adamw"
            )
        self.average = {n: p.detach().clone() for n, p in network.named_parameters()}

    def learning_rate(self, cooled: float = 0.0) -> float:
        """Warm-up, then constant; in the cool-down it falls to zero as `cooled` goes to one."""
        warm = min(1.0, (self.step + 1) / max(1, self.config.warmup))
        return self.config.learning_rate * warm * (1.0 - cooled)

    def update(self, loss: Tensor, cooled: float = 0.0) -> float:
        """
        One step down the gradient of a loss, averaged over all processes.

        Returns
        -------
        The gradient's norm before clipping. A gradient that is not finite is not followed.
        """
        self.network.zero_grad(set_to_none=False)
        torch.autograd.backward(loss)
        gradients = [p.grad for p in self.network.parameters() if p.grad is not None]
        _average_over_processes(gradients)
        norm = float(torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients])))
        self.step += 1
        if not torch.isfinite(torch.tensor(norm)):
            self.skipped += 1
            return norm
        limit = self.config.clip * self.norm if self.norm > 0 else norm
        if norm > limit:
            for gradient in gradients:
                gradient.mul_(limit / norm)
        self.norm = norm if self.norm == 0 else _follow(self.norm, min(norm, 3.0 * self.norm))
        for name, method in self.methods.items():
            for group in method.param_groups:
                group["lr"] = RATES[name] * self.learning_rate(cooled)
            method.step()
        with torch.no_grad():
            for name, parameter in self.network.named_parameters():
                age = self.step - self.begun.get(name, 0)
                decay = min(self.config.ema, age / (age + 9.0))
                self.average[name].lerp_(parameter, 1.0 - decay)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Everything to be kept, by name: weights, their average, what each method remembers."""
        kept: dict[str, Tensor] = {}
        for name, parameter in self.network.named_parameters():
            kept[f"weight.{name}"] = parameter.detach()
            kept[f"average.{name}"] = self.average[name]
            for method, optimiser in self.methods.items():
                for key, value in optimiser.state.get(parameter, {}).items():
                    kept[f"{method}.{key}.{name}"] = value
        return {name: tensor.contiguous() for name, tensor in kept.items()}

    def restore(self, tensors: Mapping[str, Tensor], step: int, norm: float) -> None:
        """
        Take up where `tensors` were written.

        What another method remembered of a parameter is left out: the one in use begins anew. A
        network that is told more than the one that was kept, or is deeper, starts by not listening
        to that.
        """
        self.step, self.norm = step, norm
        parameters = dict(self.network.named_parameters())
        with torch.no_grad():
            for name, parameter in parameters.items():
                if name.startswith(LATER_LAYERS) and f"weight.{name}" not in tensors:
                    self.begun[name] = step
                    continue
                parameter.copy_(_widened(tensors[f"weight.{name}"], parameter))
                self.average[name].copy_(_widened(tensors[f"average.{name}"], parameter))
        for method, optimiser in self.methods.items():
            used = {id(p) for group in optimiser.param_groups for p in group["params"]}
            for kept, value in tensors.items():
                if not kept.startswith(f"{method}."):
                    continue
                _, key, name = kept.split(".", 2)
                if id(parameters[name]) in used:
                    kept_value = _widened(value, parameters[name])
                    optimiser.state[parameters[name]][key] = kept_value.clone()


def _is_inner(name: str, parameter: nn.Parameter) -> bool:
    """Whether a parameter is a matrix between layers that only features pass."""
    return parameter.ndim == 2 and not name.startswith(EDGE_LAYERS)


def _widened(kept: Tensor, parameter: Tensor) -> Tensor:
    """What was kept of a matrix, with columns of zeros for inputs that have come since."""
    if kept.ndim < 2:
        return kept
    return nn.functional.pad(kept, (0, parameter.shape[1] - kept.shape[1]))


def _follow(running: float, value: float) -> float:
    """The running norm after one more value."""
    return NORM_MEMORY * running + (1.0 - NORM_MEMORY) * value


def _average_over_processes(gradients: list[Tensor]) -> None:
    """Average gradients over all processes, in one message; alone, nothing to do."""
    if not dist.is_initialized():
        return
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts):
        gradient.copy_(part.view_as(gradient))
