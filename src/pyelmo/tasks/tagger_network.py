"""The tagger of Peters et al. (2017, 2018): vectors of words -> two bidirectional LSTMs -> a score for each label.

B batch, T time, C symbols a word, D input, E second input, K labels, U distinct words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pyelmo.config import CharConfig
from pyelmo.model.char_cnn import CharCNN
from pyelmo.tasks.recurrent import BiLstm, VariationalDropout
from pyelmo.tasks.task import padded
from pyelmo.text.characters import Alphabet, encode_rows

KEPT = 500_000  # words whose rows are remembered


class TaggerNetwork(nn.Module):
    """Emissions for a `CRF`. `extra` is the size of the vectors that join what the LSTMs give."""

    def __init__(
        self, inputs: int, labels: int, *, hidden: tuple[int, int] = (200, 100), dropout: float = 0.5, extra: int = 0
    ) -> None:
        super().__init__()
        first, second = hidden
        self.first = BiLstm(inputs, first)
        self.second = BiLstm(2 * first, second)
        self.dropout = VariationalDropout(dropout)
        self.emissions = nn.Linear(2 * second + extra, labels)

    def forward(self, inputs: Tensor, mask: Tensor, extra: Tensor | None = None) -> Tensor:
        """(B, T, D), (B, T), perhaps (B, T, E) -> (B, T, K), for words alone."""
        states = self.first(self.dropout(inputs), mask)
        states = self.second(self.dropout(states), mask)
        if extra is not None:
            states = torch.cat([states, self.dropout(extra)], 2)
        emissions: Tensor = self.emissions(states)
        return emissions


class CharacterFeatures(nn.Module):
    """Words by their symbols, learnt with the task: the paper's 128 filters of width 3 over vectors of size 16."""

    def __init__(
        self, alphabet: Alphabet, *, dim: int = 16, filters: int = 128, widths: tuple[int, ...] = (3,)
    ) -> None:
        super().__init__()
        self.size = filters * len(widths)  # so many of each width
        self.rows = CharacterRows(alphabet)
        self.cnn = CharCNN(
            CharConfig(
                symbols=alphabet.size, max_length=alphabet.max_length, dim=dim,
                filters=tuple((width, filters) for width in widths), highways=0,
            )
        )  # fmt: skip

    def forward(self, chars: Tensor) -> Tensor:  # (..., C) -> (..., size)
        """Rows of `encode_rows`: for each word of a batch, or for each distinct one."""
        features: Tensor = self.cnn(chars.flatten(0, -2))
        return features.view(*chars.shape[:-1], self.size)

    def spell(self, texts: Sequence[Sequence[str]], mask: Tensor) -> Tensor:
        """The features of each word of some texts (B, T, size); a word that comes often is computed once."""
        distinct: dict[str, int] = {}
        places = [[distinct.setdefault(word, len(distinct)) for word in words] for words in texts]
        rows = torch.from_numpy(self.rows(list(distinct))).to(mask.device)  # (U, C)
        return nn.functional.embedding(padded(places, mask), self(rows))


class CharacterRows:
    """Rows of `encode_rows`, made once for each distinct word: most words of a batch were in others before."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.known: dict[str, npt.NDArray[np.int32]] = {}

    def __call__(self, words: Sequence[str]) -> npt.NDArray[np.int32]:  # (U, C)
        if len(self.known) > KEPT:
            self.known.clear()
        new = [word for word in words if word not in self.known]
        self.known.update(zip(new, encode_rows(self.alphabet, new), strict=True))
        return np.stack([self.known[word] for word in words])
