"""The tagger of Peters et al. (2017, 2018): vectors of words -> two bidirectional LSTMs -> a score for each label.

B batch, T time, C symbols a word, D input, E second input, K labels, U distinct words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pyelmo.config import CharConfig
from pyelmo.model.char_cnn import CharCNN
from pyelmo.model.recurrent import BiLstm, Packing, VariationalDropout, mask_packing
from pyelmo.tasks.harness.batching import WordIdCache, pad_ids
from pyelmo.tasks.harness.task import Words
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

    def forward(
        self, inputs: Tensor, mask: Tensor, extra: Tensor | None = None, packing: Packing | None = None
    ) -> Tensor:
        """(B, T, D), (B, T), perhaps (B, T, E) -> (B, T, K), for words alone."""
        packing = packing or mask_packing(mask)
        states = self.first(self.dropout(inputs), mask, packing)
        states = self.second(self.dropout(states), mask, packing)
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

    def spell(self, texts: Sequence[Words], device: torch.device) -> Tensor:
        """The features of each word of some texts (B, T, size); a word that comes often is computed once."""
        rows, places = self.rows(texts)
        features = self(torch.from_numpy(rows).to(device, non_blocking=True))  # (U, size)
        return nn.functional.embedding(pad_ids(places, [len(words) for words in texts], device), features)


class CharacterRows:
    """Rows of `encode_rows`, made once for each distinct word: most texts of a batch were in others before."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.numbers: dict[str, int] = {}
        self.texts = WordIdCache(self.numbers.__getitem__)
        self.table = np.empty((0, alphabet.max_length), dtype=np.int32)  # has room for more words than are known

    def __call__(self, texts: Sequence[Words]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:  # (U, C), (N,)
        """The rows of the distinct words, in the order in which they come first, and which of them each word has."""
        if len(self.numbers) > KEPT:
            self.numbers.clear()
            self.texts.clear()
        unknown = chain.from_iterable(text for text in texts if text not in self.texts.known)
        self._learn([word for word in dict.fromkeys(unknown) if word not in self.numbers])
        distinct, first, inverse = np.unique(self.texts(texts), return_index=True, return_inverse=True)
        order = first.argsort()  # not by number, which another history of batches would have made others
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return self.table[distinct[order]], places[inverse]

    def _learn(self, words: list[str]) -> None:
        known = len(self.numbers)
        if known + len(words) > len(self.table):
            room = np.empty((known + len(words), self.table.shape[1]), dtype=np.int32)
            self.table = np.concatenate([self.table[:known], room])
        if words:
            self.table[known : known + len(words)] = encode_rows(self.alphabet, words)
            self.numbers.update(zip(words, range(known, known + len(words)), strict=True))
