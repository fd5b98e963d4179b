"""Character features of words, learnt with a task: words -> symbols -> convolutions -> one vector per word.

B batch, T positions, C symbols of a word, U distinct words, N words of all texts, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pyelmo.config import CharConfig
from pyelmo.model.char_cnn import CharCNN
from pyelmo.tasks.harness.batching import WordIdCache, pad_ids
from pyelmo.tasks.harness.task import Words
from pyelmo.text.characters import Alphabet, Bytes, Jamo, encode_rows

CACHED_WORDS = 500_000  # limit of `SymbolTable`, in distinct words
ALPHABETS: dict[str, Callable[[], Alphabet]] = {"bytes": Bytes, "jamo": Jamo}


class CharacterFeatures(nn.Module):
    """A CNN over the symbols of a word. The defaults are the paper's: 128 filters of width 3, symbols of size 16."""

    def __init__(
        self, alphabet: Alphabet, *, dim: int = 16, filters: int = 128, widths: tuple[int, ...] = (3,)
    ) -> None:
        super().__init__()
        self.size = filters * len(widths)
        self.symbols = SymbolTable(alphabet)
        self.cnn = CharCNN(
            CharConfig(
                symbols=alphabet.size, max_length=alphabet.max_length, dim=dim,
                filters=tuple((width, filters) for width in widths), highways=0,
            )
        )  # fmt: skip

    def forward(self, chars: Tensor) -> Tensor:  # (..., C) -> (..., F)
        """Return the features of words given by their symbols, as `encode_rows` returns them."""
        features: Tensor = self.cnn(chars.flatten(0, -2))
        return features.view(*chars.shape[:-1], self.size)

    def append_to(self, vectors: Tensor, texts: Sequence[Words]) -> Tensor:  # (B, T, D) -> (B, T, D + F)
        """Append the features of each word to its vector; those of a repeated word are computed once."""
        device = vectors.device
        symbols, word_numbers = self.symbols(texts)
        features = self(torch.from_numpy(symbols).to(device, non_blocking=True))  # (U, F)
        numbers = pad_ids(word_numbers, [len(words) for words in texts], device)  # (B, T)
        return torch.cat([vectors, nn.functional.embedding(numbers, features)], 2)


class SymbolTable:
    """The symbols of words, encoded once for each distinct word, because most texts recur in every epoch."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.numbers: dict[str, int] = {}
        self.texts = WordIdCache(self.numbers.__getitem__)
        self.table = np.empty((0, alphabet.max_length), dtype=np.int32)  # may have room for more words than are known

    def __call__(self, texts: Sequence[Words]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the symbols (U, C) of the distinct words, and for each word (N,) its row in them.

        The symbols are in the order in which the words first occur.
        """
        if len(self.numbers) > CACHED_WORDS:
            self.numbers.clear()
            self.texts.clear()
        new_words = chain.from_iterable(text for text in texts if text not in self.texts.known)
        self._add([word for word in dict.fromkeys(new_words) if word not in self.numbers])
        distinct, first, inverse = np.unique(self.texts(texts), return_index=True, return_inverse=True)
        order = first.argsort()  # the order of the numbers would depend on the batches before
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        return self.table[distinct[order]], ranks[inverse]

    def _add(self, words: list[str]) -> None:
        known = len(self.numbers)
        if known + len(words) > len(self.table):
            room = np.empty((known + len(words), self.table.shape[1]), dtype=np.int32)
            self.table = np.concatenate([self.table[:known], room])
        if words:
            self.table[known : known + len(words)] = encode_rows(self.alphabet, words)
            self.numbers.update(zip(words, range(known, known + len(words)), strict=True))
