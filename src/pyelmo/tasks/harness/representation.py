"""Words -> what a task network reads: static vectors, and mixes of an encoder's layers.

V words of the table, D static vector, L layers, E encoder's vector, B batch, T tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder
from pyelmo.errors import ConfigError
from pyelmo.model.elmo import drop_boundaries
from pyelmo.model.scalar_mix import ScalarMix
from pyelmo.tasks.harness.layer_cache import LayerSource
from pyelmo.tasks.harness.settings import ElmoSettings, WordSettings
from pyelmo.tasks.harness.task import Example, InputSizes, NetworkInputs, Words
from pyelmo.vectors.static import StaticVectors

KEPT = 100_000  # of a file of vectors, those of its first (most frequent) words go into a model


@dataclass(frozen=True)
class EncoderShape:
    """Of an encoder's output."""

    layers: int
    dim: int


class Representation(nn.Module):
    """A table of static vectors, whose row 0 stands for all other words, and a mix for each place of ELMo."""

    def __init__(self, table: Tensor, words: WordSettings, shape: EncoderShape | None, elmo: ElmoSettings) -> None:
        super().__init__()
        self.elmo = elmo
        self.words = nn.Embedding.from_pretrained(table, freeze=not words.tune)  # (V + 1, D)
        places = ("input", "output") if elmo.where == "both" else (elmo.where,)
        self.mixes = nn.ModuleDict({place: _mix(shape.layers, elmo) for place in places} if shape else {})
        self.dropout = nn.Dropout(elmo.dropout)
        size = shape.dim if shape else 0
        self.sizes = InputSizes(table.shape[1] + size * ("input" in self.mixes), size * ("output" in self.mixes))
        if not self.sizes.input:
            raise ConfigError("nothing comes into the network: give --vectors, an encoder at the input, or words.dim")

    def forward(
        self, examples: Sequence[Example], ids: Tensor, mask: Tensor, layers: Tensor | None, lengths: Sequence[int]
    ) -> NetworkInputs:
        """`ids` (B, T) are rows of the table, `layers` (L, B, T, E) the encoder's."""
        mixed: dict[str, Tensor] = {}
        if layers is not None:
            values = layers[-1:] if self.elmo.layers == "top" else layers
            mixed = {place: self.dropout(mix(values, mask)) for place, mix in self.mixes.items()}
        parts = [self.words(ids)] + ([mixed["input"]] if "input" in mixed else [])
        return NetworkInputs(examples, torch.cat(parts, -1), mask, mixed.get("output"), lengths)

    def penalty(self) -> Tensor:
        """The mixes' part of the loss."""
        found = [mix.penalty() for mix in self.mixes.values() if isinstance(mix, ScalarMix)]
        return torch.stack(found).sum() if found else torch.zeros((), device=self.words.weight.device)

    def weights(self) -> dict[str, dict[str, object]]:
        """What the mixes have learnt: the share of each layer, and gamma."""
        return {
            place: {"weights": mix.logits.detach().softmax(0).tolist(), "gamma": float(mix.gamma.detach())}
            for place, mix in self.mixes.items()
            if isinstance(mix, ScalarMix)
        }


def _mix(layers: int, elmo: ElmoSettings) -> ScalarMix:
    """Of the top layer alone, or of the mean of all, gamma is still learnt."""
    mix = ScalarMix(
        1 if elmo.layers == "top" else layers,
        layer_norm="token" if elmo.layer_norm else None,
        penalty_weight=elmo.penalty if elmo.layers == "mix" else 0.0,
    )
    mix.logits.requires_grad_(elmo.layers == "mix")
    return mix


def build_embedding_table(
    vectors: StaticVectors | None,
    train: Iterable[Words],
    others: Iterable[Words],
    settings: WordSettings,
    seed: int,
) -> tuple[tuple[str, ...], Tensor]:  # (V + 1, D)
    """The words of a table and its rows: those of the file, and new ones where there is none or it is tuned."""
    counts = Counter(word for words in train for word in words)
    known: dict[str, Float32Array] = {}
    if vectors is not None:
        known = dict(zip(vectors.words[:KEPT], vectors.matrix, strict=False))
        for word in dict.fromkeys([*counts, *(word for words in others for word in words)]):
            found = None if word in known else vectors.vector(word)
            if found is not None:
                known[word] = found
    new: list[str] = []
    dim = settings.dim if vectors is None else vectors.dim
    if dim and (vectors is None or settings.tune):
        often = [word for word, count in counts.items() if count >= settings.min_count]
        new = [word for word in often if word not in known and word.lower() not in known]
    table = np.zeros((1 + len(known) + len(new), dim), dtype=np.float32)
    if known:
        table[1 : len(known) + 1] = list(known.values())
    if new:
        table[len(known) + 1 :] = np.random.default_rng(seed).normal(0, 0.1, (len(new), dim))
    return (*known, *new), torch.from_numpy(table)


class WordIndex(dict[str, int]):
    """Where a word stands in the table: by itself, in small letters, or at 0 with all unknown ones."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(zip(words, range(1, 1 + len(words)), strict=True))

    def __missing__(self, word: str) -> int:
        return self.get(word.lower(), 0)


def tuned(embedder: Embedder) -> LayerSource:
    """The layers of a biLM in training: gradients go back into it."""
    bilm = embedder.bilm

    def layers(sentences: Sequence[Words]) -> Tensor:
        found = bilm(embedder.batch(sentences))
        return torch.stack([drop_boundaries(values, found.mask) for values in found.values])

    return layers
