"""Training: AdamW with warm-up, a constant phase, cool-down, clipping and averaged weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor

from pointmend.network.score import ScoreNetwork

from .config import TrainingConfig

BETAS = (0.9, 0.99)
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
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
    """

    def __init__(self, network: ScoreNetwork, config: TrainingConfig) -> None:
        self.network = network
        self.config = config
        self.step = 0
        self.norm = 0.0
        self.skipped = 0
        self.adam = torch.optim.AdamW(
            network.parameters(), lr=0.0, betas=BETAS, weight_decay=config.weight_decay
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
        self.adam.zero_grad(set_to_none=False)
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
        for group in self.adam.param_groups:
            group["lr"] = self.learning_rate(cooled)
        self.adam.step()
        decay = min(self.config.ema, self.step / (self.step + 9.0))
        with torch.no_grad():
            for name, parameter in self.network.named_parameters():
                self.average[name].lerp_(parameter, 1.0 - decay)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Everything to be kept, by name: weights, their average, Adam's moments."""
        kept: dict[str, Tensor] = {}
        for name, parameter in self.network.named_parameters():
            kept[f"weight.{name}"] = parameter.detach()
            kept[f"average.{name}"] = self.average[name]
            for key in ADAM_STATE:
                kept[f"adam.{key}.{name}"] = self.adam.state[parameter][key]
        return {name: tensor.contiguous() for name, tensor in kept.items()}

    def restore(self, tensors: Mapping[str, Tensor], step: int, norm: float) -> None:
        """Take up where `tensors` were written."""
        self.step, self.norm = step, norm
        with torch.no_grad():
            for name, parameter in self.network.named_parameters():
                parameter.copy_(tensors[f"weight.{name}"])
                self.average[name].copy_(tensors[f"average.{name}"])
                keys = [k for k in tensors if k.startswith("adam.") and k.endswith(f".{name}")]
                exact = [k for k in keys if k.split(".", 2)[2] == name]
                self.adam.state[parameter] = {k.split(".", 2)[1]: tensors[k].clone() for k in exact}


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
