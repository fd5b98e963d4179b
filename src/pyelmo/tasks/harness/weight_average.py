"""A running mean of the weights in training, which answers better than the last ones do (Polyak & Juditsky 1992)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class WeightAverage:
    """Means of the parameters that are trained, by names: the nearer `decay` is to 1 the longer they remember.

    With a decay of 0 there are none, and the model keeps its own weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        named = model.named_parameters() if decay else ()
        self.own = {name: each.data for name, each in named if each.requires_grad}
        self.means = {name: each.clone() for name, each in self.own.items()}

    def update(self, step: int) -> None:
        """After the weights changed; the first steps, whose weights are soon far away, are forgotten sooner."""
        decay = min(self.decay, (1 + step) / (10 + step))
        if self.means:  # all at once: one by one they would take a GPU's host as long as the rest of a step
            torch._foreach_lerp_(list(self.means.values()), list(self.own.values()), 1 - decay)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """The model has the means as its weights in here, and its own again after."""
        kept = {name: each.clone() for name, each in self.own.items()}
        self._put(self.means)
        try:
            yield
        finally:
            self._put(kept)

    def _put(self, values: dict[str, Tensor]) -> None:
        for name, each in self.own.items():
            each.copy_(values[name])
