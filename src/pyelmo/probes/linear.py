"""A linear probe: softmax regression on frozen vectors. It finds only what is linearly encoded in them.

N words, D vector, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from pyelmo.arrays import Int64Array
from pyelmo.errors import InputError

ProbeVectors = npt.NDArray[np.float32] | npt.NDArray[np.float16]


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """The settings of training. They are the same for every encoder and layer: no figure is the best of several."""

    epochs: int = 10
    batch_size: int = 256
    lr: float = 1e-3  # initial learning rate of Adam, with linear decay to 0
    seed: int = 0


@dataclass(frozen=True)
class LinearProbe:
    """A trained probe: class scores are standardised vector @ weight + bias."""

    weight: Tensor  # (D, C)
    bias: Tensor  # (C,)
    mean: Tensor  # (D,)
    scale: Tensor  # (D,)

    def predict(self, vectors: ProbeVectors) -> Int64Array:  # (N, D) -> (N,)
        batches = torch.from_numpy(vectors).split(1 << 14)
        scores = [(batch.float() - self.mean) * self.scale @ self.weight + self.bias for batch in batches]
        classes: Int64Array = torch.cat(scores).argmax(1).numpy()
        return classes

    def accuracy(self, vectors: ProbeVectors, labels: Int64Array) -> float:
        """Return the accuracy in percent."""
        return 100 * float((self.predict(vectors) == labels).mean())


def fit(vectors: ProbeVectors, labels: Int64Array, classes: int, settings: ProbeSettings | None = None) -> LinearProbe:
    """Train a probe on `vectors` (N, D), float32 or float16, and their `labels` (N,) from 0 to `classes` - 1."""
    settings = settings or ProbeSettings()
    if vectors.ndim != 2 or labels.shape != vectors.shape[:1] or not len(labels):
        raise InputError(f"expected vectors (N, D) and labels (N,), got the shapes {vectors.shape} and {labels.shape}")
    inputs, targets = torch.from_numpy(vectors), torch.from_numpy(labels)
    # The scale of the vectors differs by layer: after standardising, one learning rate fits all.
    mean = torch.from_numpy(vectors.mean(0, dtype=np.float64)).float()
    deviation = torch.from_numpy(vectors.std(0, dtype=np.float64)).float()
    scale = 1 / deviation.clamp(min=1e-6)
    weight = torch.zeros(vectors.shape[1], classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.Adam([weight, bias], lr=settings.lr)
    generator = torch.Generator().manual_seed(settings.seed)
    steps = settings.epochs * -(-len(labels) // settings.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for _ in range(settings.epochs):
        for rows in torch.randperm(len(labels), generator=generator).split(settings.batch_size):
            scores = (inputs[rows].float() - mean) * scale @ weight + bias
            loss = functional.cross_entropy(scores, targets[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return LinearProbe(weight.detach(), bias.detach(), mean, scale)
