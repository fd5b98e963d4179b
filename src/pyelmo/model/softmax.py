"""The softmax over the vocabulary: one for both directions.

M places, P size of a direction's vector, V words.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

# Places scored at once where no gradient is needed: (places, V) is the largest array of an evaluation.
CHUNK = 1024


class AdaptiveSoftmax(nn.Module):
    """The same interface for a large vocabulary (Grave et al. 2017): rare words in clusters of smaller vectors."""

    def __init__(self, words: int, dim: int, cutoffs: tuple[int, ...]) -> None:
        super().__init__()
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(dim, words, list(cutoffs), div_value=4.0, head_bias=True)

    def forward(self, vectors: Tensor) -> Tensor:  # (M, P) -> (M, V)
        return self.clusters.log_prob(vectors)

    def nll(self, vectors: Tensor, targets: Tensor) -> Tensor:  # (M, P), (M,) -> (M,)
        if not len(targets):
            return vectors.new_zeros(0)
        # torch's module mixes the types of its clusters under autocast, and stops.
        with torch.autocast(vectors.device.type, enabled=False):
            scores: Tensor = self.clusters(vectors.to(self.clusters.head.weight.dtype), targets).output
        return -scores


class Softmax(nn.Module):
    """Word vectors and biases."""

    def __init__(self, words: int, dim: int) -> None:
        super().__init__()
        self.weight: Tensor = nn.Parameter(torch.empty(words, dim))
        nn.init.normal_(self.weight, std=1 / math.sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, vectors: Tensor) -> Tensor:  # (M, P) -> (M, V)
        """Log probabilities of every word."""
        return torch.log_softmax(nn.functional.linear(vectors, self.weight, self.bias), -1)

    def nll(self, vectors: Tensor, targets: Tensor) -> Tensor:  # (M, P), (M,) -> (M,)
        """Minus the log probability of each place's target."""
        if torch.is_grad_enabled() or len(vectors) <= CHUNK:
            return nn.functional.cross_entropy(
                nn.functional.linear(vectors, self.weight, self.bias), targets, reduction="none"
            )
        parts = zip(vectors.split(CHUNK), targets.split(CHUNK), strict=True)
        return torch.cat([self.nll(part, target) for part, target in parts])
