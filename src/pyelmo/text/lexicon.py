"""Convert tokenised sentences to the input arrays of a biLM.

A batch contains each distinct word once. U distinct words, C symbols per word, B sentences, T tokens including the
two boundary tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Int32Array
from pyelmo.errors import InputError
from pyelmo.text.characters import Alphabet, Dictionary, encode_rows
from pyelmo.text.vocabulary import BEGIN, END, Vocabulary


@dataclass(frozen=True)
class EncodedWords:
    """Words as symbol ids, as word ids, or both."""

    chars: Int32Array | None  # (U, C)
    words: Int32Array | None  # (U,)


@dataclass(frozen=True)
class Lexicon:
    """The alphabet of a model's character CNN, and the vocabulary of its embedding table or softmax."""

    alphabet: Alphabet | None = None
    vocab: Vocabulary | None = None
    reads_words: bool = False  # the model has an embedding table, so its input needs the vocabulary

    @property
    def begin(self) -> str:
        return self.vocab.begin if self.vocab else BEGIN

    @property
    def end(self) -> str:
        return self.vocab.end if self.vocab else END

    def encode(self, words: Sequence[str]) -> EncodedWords:
        """Return the ids of words, usually distinct ones."""
        chars = encode_rows(self.alphabet, words) if self.alphabet else None
        word_ids = None
        if self.reads_words:
            if self.vocab is None:
                raise InputError("the model has an embedding table, but no vocabulary. Pass vocab=FILE (--vocab FILE).")
            cut = self.alphabet.cut if isinstance(self.alphabet, Dictionary) else str
            word_ids = self.vocab.encode(cut(word) for word in words)
        return EncodedWords(chars, word_ids)

    def batch(self, sentences: Sequence[Sequence[str]]) -> tuple[list[str], Int32Array, npt.NDArray[np.int64]]:
        """Return the distinct words of a batch, their index (B, T) with boundary tokens, and the lengths (B,).

        Positions after the end of a sentence are padding; they contain the index of the first boundary token.
        """
        numbers: dict[str, int] = {self.begin: 0, self.end: 1}
        lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int64)
        index = np.zeros((len(sentences), int(lengths.max(initial=0))), dtype=np.int32)
        for row, sentence in enumerate(sentences):
            ids = [numbers.setdefault(word, len(numbers)) for word in sentence]
            index[row, 1 : len(ids) + 1] = ids
            index[row, len(ids) + 1] = 1
        return list(numbers), index, lengths
