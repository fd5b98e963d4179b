"""What a task network holds: a biLM and N mixes of its layers (for the input and the output of the network)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pyelmo.errors import InputError
from pyelmo.model.bilm import Batch, BiLM, Layers
from pyelmo.model.lstm import State
from pyelmo.model.scalar_mix import LayerNorm, ScalarMix


@dataclass(frozen=True)
class ElmoOutput:
    """One tensor (B, T, D) for each mix, all under the same mask (B, T)."""

    representations: list[Tensor]
    mask: Tensor
    state: State


class Elmo(nn.Module):
    """A biLM, frozen unless `trainable`, and `mixes` scalar mixes over it, each followed by dropout.

    `keep_marks` leaves the sentence marks in; `weights`, `gamma` and `trainable_mix` set the mixes; `penalty_weight`
    is the paper's lambda, its term is `penalty()`.
    """

    def __init__(
        self,
        bilm: BiLM,
        *,
        mixes: int = 1,
        dropout: float = 0.5,
        trainable: bool = False,
        keep_marks: bool = False,
        layer_norm: LayerNorm | None = None,
        per_direction: bool = False,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        trainable_mix: bool = True,
        penalty_weight: float = 0.0,
    ) -> None:
        super().__init__()
        if per_direction and not bilm.config.bidirectional:
            raise InputError("per_direction needs a bidirectional model; this one reads forwards only")
        self.bilm = bilm
        self.trainable = trainable
        self.keep_marks = keep_marks
        bilm.requires_grad_(trainable)
        self.mixes = nn.ModuleList(
            ScalarMix(
                bilm.config.layers, per_direction=per_direction, layer_norm=layer_norm, weights=weights, gamma=gamma,
                trainable=trainable_mix, penalty_weight=penalty_weight,
            )
            for _ in range(mixes)
        )  # fmt: skip
        self.dropout = nn.Dropout(dropout)

    @property
    def dim(self) -> int:
        return self.bilm.config.dim

    def forward(self, batch: Batch, state: State | None = None) -> ElmoOutput:
        with torch.set_grad_enabled(self.trainable and torch.is_grad_enabled()):
            layers = self.bilm(batch, state)
        return self.mix(layers)

    def mix(self, layers: Layers) -> ElmoOutput:
        """The mixes of layers that are there already (cached, or computed elsewhere)."""
        representations = [mix(layers.values, layers.mask) for mix in self.mixes]
        mask = layers.mask
        if not self.keep_marks:
            representations = [drop_marks(values, mask) for values in representations]
            mask = marks_dropped(mask)
        return ElmoOutput([self.dropout(values) for values in representations], mask, layers.state)

    def penalty(self) -> Tensor:
        """The regulariser of all mixes, to be added to the task's loss."""
        return torch.stack([mix.penalty() for mix in self.mixes if isinstance(mix, ScalarMix)]).sum()


def marks_dropped(mask: Tensor) -> Tensor:
    """The mask of the same sentences without their two marks."""
    return mask[:, 2:]


def drop_marks(values: Tensor, mask: Tensor) -> Tensor:  # (B, T, D) -> (B, T - 2, D)
    """Vectors without those of the sentence marks, zero after the end."""
    return values[:, 1:-1].masked_fill(~marks_dropped(mask).unsqueeze(-1), 0.0)
