"""A moving average of the trained weights, which often scores better than the last weights (Polyak & Juditsky 1992)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class WeightAverage:
    """Exponential moving averages of the trainable parameters, by name.

    With a decay of 0 there are no averages, and the model keeps its own weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        parameters = model.named_parameters() if decay else ()
        self.weights = {name: parameter.data for name, parameter in parameters if parameter.requires_grad}
        self.means = {name: weight.clone() for name, weight in self.weights.items()}

    def update(self, step: int) -> None:
        """Add the weights after a training step. Early steps use a smaller decay, because weights change fast there."""
        decay = min(self.decay, (1 + step) / (10 + step))
        if self.means:  # one call for all tensors: one call each would take the host as long as the rest of a step
            torch._foreach_lerp_(list(self.means.values()), list(self.weights.values()), 1 - decay)

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averages as its weights, and restore its own weights at the end."""
        saved = {name: weight.clone() for name, weight in self.weights.items()}
        self._set(self.means)
        try:
            yield
        finally:
            self._set(saved)

    def _set(self, values: dict[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(values[name])
