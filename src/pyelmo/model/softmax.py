"""The softmax over the vocabulary, shared by both directions: p(t_k | context) = softmax(S h_k,L + b).

M positions, P size of one direction's vector, V words.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

# Positions in one product if no gradient is needed: (positions, V) is the largest array of an evaluation.
CHUNK = 1024


class AdaptiveSoftmax(nn.Module):
    """The same interface for a large vocabulary (Grave et al. 2017): clusters of rare words have smaller vectors."""

    def __init__(self, words: int, dim: int, cutoffs: tuple[int, ...]) -> None:
        super().__init__()
        self.clusters = nn.AdaptiveLogSoftmaxWithLoss(dim, words, list(cutoffs), div_value=4.0, head_bias=True)

    def forward(self, vectors: Tensor) -> Tensor:  # (M, P) -> (M, V)
        return self.clusters.log_prob(vectors)

    def nll(self, vectors: Tensor, targets: Tensor) -> Tensor:  # (M, P), (M,) -> (M,)
        if not len(targets):
            return vectors.new_zeros(0)
        # Under autocast, torch's module fails because its clusters have different dtypes.
        with torch.autocast(vectors.device.type, enabled=False):
            scores: Tensor = self.clusters(vectors.to(self.clusters.head.weight.dtype), targets).output
        return -scores


class Softmax(nn.Module):
    """One vector and one bias for each word."""

    def __init__(self, words: int, dim: int) -> None:
        super().__init__()
        self.weight: Tensor = nn.Parameter(torch.empty(words, dim))
        nn.init.normal_(self.weight, std=1 / math.sqrt(dim))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, vectors: Tensor) -> Tensor:  # (M, P) -> (M, V)
        """Return the log probability of every word."""
        return torch.log_softmax(nn.functional.linear(vectors, self.weight, self.bias), -1)

    def nll(self, vectors: Tensor, targets: Tensor) -> Tensor:  # (M, P), (M,) -> (M,)
        """Return the negative log likelihood of each target."""
        if torch.is_grad_enabled() or len(vectors) <= CHUNK:
            return nn.functional.cross_entropy(
                nn.functional.linear(vectors, self.weight, self.bias), targets, reduction="none"
            )
        chunks = zip(vectors.split(CHUNK), targets.split(CHUNK), strict=True)
        return torch.cat([self.nll(*chunk) for chunk in chunks])
