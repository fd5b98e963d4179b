"""Adagrad and AdamW for a model with a very large softmax table, of which only the rows that a batch uses are updated.

K rows of a batch, V rows of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pyelmo.training.recipe import TrainingConfig

BETA1, EPSILON = 0.9, 1e-8
RECENT = 200  # steps whose norms `clip_median` looks at


@dataclass(frozen=True)
class RowGradient:
    """The gradient of the rows of a table that a batch uses."""

    name: str
    rows: Tensor  # (K,) distinct
    gradient: Tensor  # (K, ...)
    count: Tensor | None = None  # () how many rows to update, from the first; None for all of them


class Optimiser:
    """Adagrad, as in the paper, or AdamW, for dense parameters and for single rows of a table."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], config: TrainingConfig) -> None:
        self.config = config
        self.parameters = dict(parameters)
        self.steps = 0
        self.state: dict[str, Tensor] = {}
        if config.clip_median is not None:
            self.state["norms"] = torch.zeros(RECENT, device=next(iter(self.parameters.values())).device)
        for name, parameter in self.parameters.items():
            if config.optimiser == "adagrad":
                self.state[f"{name}/sum"] = torch.full_like(parameter, config.accumulator)
            else:
                self.state[f"{name}/first"] = torch.zeros_like(parameter)
                self.state[f"{name}/second"] = torch.zeros_like(parameter)

    def rates(self, lr: float, number: int) -> Tensor:
        """Return what changes from step to step (4,): its number and the factors of update, decay and second moment.

        They are a tensor on the device, so that a recorded step can be replayed with other values.
        """
        if self.config.optimiser == "adagrad":
            return torch.tensor([number, -lr, 1.0, 1.0], dtype=torch.float64)
        step, second = -lr / (1 - BETA1**number), (1 - self.config.beta2**number) ** -0.5
        return torch.tensor([number, step, 1 - lr * self.config.weight_decay, second], dtype=torch.float64)

    @torch.no_grad()
    def apply(self, rates: Tensor, rows: Mapping[str, RowGradient]) -> None:
        """Update all parameters that have a gradient, and of the tables in `rows` only these rows."""
        gradients = {name: parameter.grad for name, parameter in self.parameters.items() if name not in rows}
        dense = {name: gradient for name, gradient in gradients.items() if gradient is not None}
        _, step, decay, second = rates.float().unbind()
        if dense and self.config.optimiser == "adagrad":
            self._adagrad(dense, step)
        elif dense:
            self._adamw(dense, step, decay, second)
        for name, part in rows.items():
            self._update_rows(name, part, step, second)

    def _adagrad(self, dense: dict[str, Tensor], step: Tensor) -> None:
        parameters, gradients = [self.parameters[name].data for name in dense], list(dense.values())
        sums = [self.state[f"{name}/sum"] for name in dense]
        torch._foreach_addcmul_(sums, gradients, gradients, 1.0)
        changes = torch._foreach_div(gradients, torch._foreach_sqrt(sums))
        torch._foreach_mul_(changes, step)
        torch._foreach_add_(parameters, changes)

    def _adamw(self, dense: dict[str, Tensor], step: Tensor, decay: Tensor, correction: Tensor) -> None:
        parameters, gradients = [self.parameters[name].data for name in dense], list(dense.values())
        first = [self.state[f"{name}/first"] for name in dense]
        second = [self.state[f"{name}/second"] for name in dense]
        beta2 = self.config.beta2
        if self.config.weight_decay:
            matrices = [parameter for parameter in parameters if parameter.dim() > 1]
            torch._foreach_mul_(matrices, decay)
        torch._foreach_lerp_(first, gradients, 1 - BETA1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        scales = torch._foreach_sqrt(second)
        torch._foreach_mul_(scales, correction)
        torch._foreach_add_(scales, EPSILON)
        changes = torch._foreach_div(first, scales)
        torch._foreach_mul_(changes, step)
        torch._foreach_add_(parameters, changes)

    def _update_rows(self, name: str, part: RowGradient, step: Tensor, correction: Tensor) -> None:
        """Apply the same rule to single rows. Adam's moments of a row do not change while no batch uses it."""
        table, rows, gradient = self.parameters[name].data, part.rows, part.gradient
        if self.config.optimiser == "adagrad":  # a row with a zero gradient does not change
            sums = self.state[f"{name}/sum"]
            row_sums = sums[rows].addcmul_(gradient, gradient)
            sums[rows] = row_sums
            table.index_add_(0, rows, gradient / row_sums.sqrt() * step)
            return
        beta2 = self.config.beta2
        before = [self.state[f"{name}/{moment}"][rows] for moment in ("first", "second")]
        first = before[0].lerp(gradient, 1 - BETA1)
        second = before[1].mul(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        change = first / (second.sqrt() * correction + EPSILON) * step
        if part.count is not None:
            updated = torch.arange(len(rows), device=rows.device) < part.count
            updated = updated.view(-1, *[1] * (gradient.dim() - 1))
            first, second = torch.where(updated, first, before[0]), torch.where(updated, second, before[1])
            change = torch.where(updated, change, 0.0)
        self.state[f"{name}/first"][rows] = first
        self.state[f"{name}/second"][rows] = second
        table.index_add_(0, rows, change)


def clip_gradients(gradients: list[Tensor], limit: float | Tensor | None) -> Tensor:
    """Scale all gradients so that their total norm is at most `limit`, and return the norm before."""
    norms = torch._foreach_norm(gradients)
    norm: Tensor = torch.linalg.vector_norm(torch.stack([value.float() for value in norms]))
    if limit is not None:
        torch._foreach_mul_(gradients, (limit / (norm + 1e-6)).clamp(max=1.0))
    return norm


def clip_by_median(gradients: list[Tensor], config: TrainingConfig, norms: Tensor, number: Tensor) -> Tensor:
    """Clip at a multiple of the median of the last norms, or set gradients far above it to zero.

    One sequence in a batch can have a gradient a billion times the usual one. Clipped to a fixed norm, it would decide
    the direction of the step. Everything stays on the device, so a graph can hold it.

    Args:
        gradients: All gradients, changed in place.
        config: `clip_median` is the multiple; `clip_norm` is the limit until RECENT norms are known.
        norms: The last norms (RECENT,), changed in place.
        number: The number of the step, from 1.

    Returns:
        The norm before clipping.
    """
    assert config.clip_median is not None
    known = number > RECENT
    first = torch.inf if config.clip_norm is None else config.clip_norm
    limit = torch.where(known, config.clip_median * norms.sort().values[RECENT // 2], first)
    norm = clip_gradients(gradients, limit)
    torch._foreach_mul_(gradients, (~known | (norm <= 2 * limit)).float())
    places = torch.arange(RECENT, device=norms.device)
    norms.copy_(torch.where(places == (number - 1) % RECENT, norm, norms))
    return norm
