"""Tokenised sentences -> the arrays a biLM reads.

A batch names each distinct word once: U distinct words, C symbols a word, B sentences, T tokens with the two marks.
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
    """Some words as ids: by their characters, by their number in the vocabulary, or both."""

    chars: Int32Array | None  # (U, C)
    words: Int32Array | None  # (U,)


@dataclass(frozen=True)
class Lexicon:
    """How a model reads words: an alphabet for its character CNN, a vocabulary for its word table or softmax."""

    alphabet: Alphabet | None = None
    vocab: Vocabulary | None = None
    reads_words: bool = False  # the model has a word table, so that its input needs the vocabulary

    @property
    def begin(self) -> str:
        return self.vocab.begin if self.vocab else BEGIN

    @property
    def end(self) -> str:
        return self.vocab.end if self.vocab else END

    def encode(self, words: Sequence[str]) -> EncodedWords:
        """The ids of some words, usually distinct ones."""
        chars = encode_rows(self.alphabet, words) if self.alphabet else None
        numbers = None
        if self.reads_words:
            if self.vocab is None:
                raise InputError("this model reads words by number, and its vocabulary is not known: give vocab=FILE")
            cut = self.alphabet.cut if isinstance(self.alphabet, Dictionary) else str
            numbers = self.vocab.encode(cut(word) for word in words)
        return EncodedWords(chars, numbers)

    def batch(self, sentences: Sequence[Sequence[str]]) -> tuple[list[str], Int32Array, npt.NDArray[np.int64]]:
        """The distinct words of some sentences, their index (B, T) with the marks around each sentence, the lengths.

        Places after a sentence's end hold the begin mark's index; the lengths (B,) say where they start.
        """
        numbers: dict[str, int] = {self.begin: 0, self.end: 1}
        lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int64)
        index = np.zeros((len(sentences), int(lengths.max(initial=0))), dtype=np.int32)
        for row, sentence in enumerate(sentences):
            ids = [numbers.setdefault(word, len(numbers)) for word in sentence]
            index[row, 1 : len(ids) + 1] = ids
            index[row, len(ids) + 1] = 1
        return list(numbers), index, lengths
