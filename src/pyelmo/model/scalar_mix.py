"""The task's own mix of a biLM's layers (equation 1 of the paper): gamma * sum_j softmax(w)_j * layer_j.

L layers (the token layer counted in), B batch, T time, D vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from pyelmo.errors import InputError

LayerNorm = Literal["token", "batch"]


class ScalarMix(nn.Module):
    """One weight a layer, or with `per_direction` one for each of the 2L - 1 representations.

    `per_direction` weighs the token vector, then forward and backward of each layer apart: a half of the mixed vector
    is the sum over its own direction, with one softmax over all weights. `layer_norm="token"` normalises every layer of
    every token by itself; "batch" is the old programs' way, one mean and variance over all real tokens of the batch,
    so that a sentence's vectors depend on its company. `penalty_weight` is the paper's lambda.
    """

    def __init__(
        self,
        layers: int,
        *,
        per_direction: bool = False,
        layer_norm: LayerNorm | None = None,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        trainable: bool = True,
        penalty_weight: float = 0.0,
    ) -> None:
        super().__init__()
        count = 2 * layers - 1 if per_direction else layers
        if weights is not None and len(weights) != count:
            raise InputError(f"a mix of {layers} layers has {count} weights, got {len(weights)}")
        if layer_norm not in (None, "token", "batch"):
            raise InputError(f"layer_norm {layer_norm!r} is none of None, 'token', 'batch'")
        self.layers = layers
        self.per_direction = per_direction
        self.layer_norm = layer_norm
        self.penalty_weight = penalty_weight
        start = torch.zeros(count) if weights is None else torch.tensor([float(weight) for weight in weights])
        self.logits = nn.Parameter(start, requires_grad=trainable)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=trainable)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:  # (L, B, T, D), (B, T) -> (B, T, D)
        if len(values) != self.layers:
            raise InputError(f"this mix is for {self.layers} layers, got {len(values)}")
        if self.layer_norm == "token":
            values = nn.functional.layer_norm(values, values.shape[-1:])
        elif self.layer_norm == "batch":
            values = _batch_norm(values, mask)
        return self.gamma * weigh(self.logits.softmax(0), values)

    def penalty(self) -> Tensor:
        """lambda * |w|^2, to be added to the task's loss: a large lambda pulls the mix to the plain mean."""
        return self.penalty_weight * self.logits.square().sum()


def weigh(weights: Tensor, values: Tensor) -> Tensor:
    """The weighted sum of layers (L, .., D): one weight a layer, or one for each of the 2L - 1 representations.

    The latter are those of the token, then forward and backward of each layer; each half sums its own direction.
    """
    if len(weights) == len(values):
        return torch.einsum("l,l...->...", weights, values)
    forward, backward = values.chunk(2, -1)
    halves = ((weights[1::2], forward), (weights[2::2], backward))
    return torch.cat([torch.einsum("l,l...->...", torch.cat([weights[:1], own]), half) for own, half in halves], -1)


def _batch_norm(values: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        mask = values.new_ones(values.shape[1:3], dtype=torch.bool)
    real = mask.unsqueeze(-1).to(values.dtype)  # (B, T, 1)
    count = mask.sum() * values.shape[-1]
    mean = (values * real).sum((1, 2, 3), keepdim=True) / count
    variance = ((values - mean) * real).square().sum((1, 2, 3), keepdim=True) / count
    return (values - mean) / torch.sqrt(variance + 1e-13)
