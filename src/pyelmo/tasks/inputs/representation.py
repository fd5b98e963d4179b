"""Words -> the vectors that a task network reads: static word vectors and mixes of an encoder's layers.

V words of the embedding table, D static vector, L layers, E encoder vector, B batch, T time steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pyelmo.errors import ConfigError
from pyelmo.model.elmo import LayerMixes
from pyelmo.model.scalar_mix import ScalarMix
from pyelmo.tasks.harness.settings import ElmoSettings, WordSettings
from pyelmo.tasks.harness.task import Example, InputSizes, NetworkInputs


@dataclass(frozen=True)
class EncoderShape:
    """The number of layers of an encoder and the size of its vectors."""

    layers: int
    dim: int


class Representation(nn.Module):
    """An embedding table of static word vectors, and a mix of encoder layers for the input, the output or both."""

    def __init__(self, table: Tensor, words: WordSettings, shape: EncoderShape | None, elmo: ElmoSettings) -> None:
        super().__init__()
        self.elmo = elmo
        self.words = nn.Embedding.from_pretrained(table, freeze=not words.tune)  # (V + 1, D)
        self.mix_names: tuple[str, ...] = ()
        if shape is not None:
            self.mix_names = ("input", "output") if elmo.where == "both" else (elmo.where,)
        self.mixes = LayerMixes({name: _mix(shape.layers, elmo) for name in self.mix_names if shape}, elmo.dropout)
        size = shape.dim if shape else 0
        self.sizes = InputSizes(
            input=table.shape[1] + (size if "input" in self.mix_names else 0),
            output=size if "output" in self.mix_names else 0,
        )
        if not self.sizes.input:
            raise ConfigError(
                "the network has no input vectors. Give --vectors, use the encoder at the input, or set words.dim."
            )

    def forward(
        self, examples: Sequence[Example], ids: Tensor, mask: Tensor, layers: Tensor | None, lengths: Sequence[int]
    ) -> NetworkInputs:
        """Return the inputs for word ids (B, T) and encoder layers (L, B, T, E)."""
        mixed: dict[str, Tensor] = {}
        if layers is not None:
            values = layers[-1:] if self.elmo.layers == "top" else layers
            mixed = dict(zip(self.mix_names, self.mixes(values, mask), strict=True))
        vectors = [self.words(ids)] + ([mixed["input"]] if "input" in mixed else [])
        return NetworkInputs(examples, torch.cat(vectors, -1), mask, mixed.get("output"), lengths)

    def penalty(self) -> Tensor:
        """Return the L2 penalty on the layer weights, a part of the loss."""
        if not self.mix_names:
            return torch.zeros((), device=self.words.weight.device)
        return self.mixes.penalty()

    def layer_weights(self) -> dict[str, dict[str, object]]:
        """Return the softmax weights of the layers and gamma for each mix."""
        return {
            name: {"weights": mix.logits.detach().softmax(0).tolist(), "gamma": float(mix.gamma.detach())}
            for name, mix in zip(self.mix_names, self.mixes, strict=True)
        }


def _mix(layers: int, elmo: ElmoSettings) -> ScalarMix:
    """Return a mix. For the top layer or the average of all layers, only gamma is trained."""
    mix = ScalarMix(
        1 if elmo.layers == "top" else layers,
        layer_norm="token" if elmo.layer_norm else None,
        penalty_weight=elmo.penalty if elmo.layers == "mix" else 0.0,
    )
    mix.logits.requires_grad_(elmo.layers == "mix")
    return mix
