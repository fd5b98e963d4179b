"""The weighted sum of a biLM's layers that a task learns (equation 1 of the paper).

    ELMo_k = gamma * sum_j s_j h_k,j,   s = softmax(w)

L layers (including the token layer), B batch, T time, D vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from pyelmo.errors import InputError

LayerNorm = Literal["token", "batch"]


class ScalarMix(nn.Module):
    """A weighted sum of layers with trainable weights and a trainable scale gamma.

    Args:
        layers: The number of layers L, including the token layer.
        per_direction: Learn 2L - 1 weights instead of L: one for the token layer, then one for the forward and one for
            the backward half of each layer. One softmax is over all weights; each half sums its own direction.
        layer_norm: Normalise the layers before the sum. "token" normalises each vector; "batch" has one mean and
            variance of a layer over all tokens of the batch, as AllenNLP and bilm-tf do, so that the vectors of a
            sentence depend on its batch mates. None does not normalise.
        weights: The weights w before the softmax to start from; by default zeros, which is the mean of the layers.
        gamma: The scale to start from.
        trainable: Whether the weights and gamma have gradients.
        penalty_weight: lambda, the factor of the L2 penalty on the layer weights; see `penalty`.

    Raises:
        InputError: The number of weights is wrong, or `layer_norm` is unknown.

    Example:
        >>> import torch
        >>> from pyelmo import ScalarMix
        >>> layers = torch.stack([torch.zeros(1, 2, 4), torch.ones(1, 2, 4), 5 * torch.ones(1, 2, 4)])
        >>> ScalarMix(3)(layers)[0, 0]
        tensor([2., 2., 2., 2.], grad_fn=<SelectBackward0>)
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
            raise InputError(f"weights: a mix of {layers} layers needs {count}, got {len(weights)}")
        if layer_norm not in (None, "token", "batch"):
            raise InputError(f"layer_norm: {layer_norm!r} is none of None, 'token', 'batch'")
        self.layers = layers
        self.per_direction = per_direction
        self.layer_norm = layer_norm
        self.penalty_weight = penalty_weight
        start = torch.zeros(count) if weights is None else torch.tensor([float(weight) for weight in weights])
        self.logits = nn.Parameter(start, requires_grad=trainable)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=trainable)

    def forward(self, values: Tensor, mask: Tensor | None = None) -> Tensor:  # (L, B, T, D), (B, T) -> (B, T, D)
        """Return the weighted sum.

        Args:
            values: The layers (L, B, T, D).
            mask: True for tokens (B, T); only `layer_norm="batch"` needs it. By default all positions are tokens.

        Returns:
            The mixed vectors (B, T, D).

        Raises:
            InputError: The number of layers is not that of this mix.
        """
        if len(values) != self.layers:
            raise InputError(f"values: this mix is for {self.layers} layers, got {len(values)}")
        if self.layer_norm == "token":
            values = nn.functional.layer_norm(values, values.shape[-1:])
        elif self.layer_norm == "batch":
            values = _batch_norm(values, mask)
        return self.gamma * weigh(self.logits.softmax(0), values)

    def penalty(self) -> Tensor:
        """Return lambda * |w|^2 to add to the task's loss; a large lambda pulls the mix to the mean of the layers.

        Returns:
            A scalar tensor.

        Example:
            >>> from pyelmo import ScalarMix
            >>> float(ScalarMix(3, weights=[0.0, 1.0, 2.0], penalty_weight=0.5).penalty())
            2.5
        """
        return self.penalty_weight * self.logits.square().sum()


def weigh(weights: Tensor, values: Tensor) -> Tensor:
    """Return the sum of layers (L, ..., D) with L weights, or with 2L - 1 as in `ScalarMix(per_direction=True)`."""
    if len(weights) == len(values):
        return torch.einsum("l,l...->...", weights, values)
    forward, backward = values.chunk(2, -1)
    halves = ((weights[1::2], forward), (weights[2::2], backward))
    return torch.cat([torch.einsum("l,l...->...", torch.cat([weights[:1], own]), half) for own, half in halves], -1)


def _batch_norm(values: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        mask = values.new_ones(values.shape[1:3], dtype=torch.bool)
    tokens = mask.unsqueeze(-1).to(values.dtype)  # (B, T, 1)
    count = mask.sum() * values.shape[-1]
    mean = (values * tokens).sum((1, 2, 3), keepdim=True) / count
    variance = ((values - mean) * tokens).square().sum((1, 2, 3), keepdim=True) / count
    return (values - mean) / torch.sqrt(variance + 1e-13)
