"""The encoder protocol, and what the encoders share: output checks, batches by length, word vectors from morphemes.

    tokenised sentences --Encoder--> one array (L, T, D) for each sentence, in the same order

L layers, T tokens of a sentence, D vector.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyelmo.arrays import Float32Array
from pyelmo.embed.embedder import Embedder
from pyelmo.embed.layers import pool_words
from pyelmo.embed.substitutes import Place
from pyelmo.errors import InputError
from pyelmo.text.tokens import split_within

SubstituteVectors = Callable[[Iterable[Place]], Iterator[Float32Array]]  # words in sentences -> a vector (V,) each
_WINDOW = 16  # batches whose sentences are sorted by length together
_MORPHEMES = "ko-morph"


class Encoder(Protocol):
    """Any callable that gives words vectors.

    `Embedder.stream`, a `StaticVectors` and what `open_encoder` returns are encoders, and so is any function of this
    signature.

    Example:
        >>> import numpy as np
        >>> from pyelmo.encoders import Encoder
        >>> def word_lengths(sentences):
        ...     for words in sentences:
        ...         yield np.array([[[len(word)] for word in words]], dtype=np.float32)
        >>> encoder: Encoder = word_lengths
        >>> [vectors.shape for vectors in encoder([["A", "bank", "account"]])]
        [(1, 3, 1)]
    """

    def __call__(self, sentences: Sequence[list[str]], /) -> Iterable[Float32Array]:
        """Embed tokenised sentences.

        Args:
            sentences: Sentences as lists of words.

        Returns:
            One array (layers, words, vector size) for each sentence, in the order of the sentences.
        """


@dataclass(frozen=True, kw_only=True)
class LoadedEncoder:
    """An encoder whose weights have been read."""

    embed: Encoder
    layers: tuple[str, ...]  # names, the lowest layer first
    language: str | None = None  # the language whose rules split the training text, if known
    knows: Callable[[str], bool] | None = None  # whether a word has a vector; None: every word has one
    embedder: Embedder | None = None  # of an ELMo model, which can be fine-tuned

    @property
    def substitutes(self) -> SubstituteVectors | None:
        """What gives words the distribution of their substitutes as vectors, if the encoder predicts words."""
        if self.embedder is None or not self.embedder.predicts_words:
            return None
        return self.embedder.substitute_vectors


class NamedEncoder:
    """An encoder with a name. Its weights are read at the first use.

    Attributes:
        name: The name shown in tables and reports.
        facts: What identifies the model: its name, the checksums of its files, and the precision.

    Example:
        >>> from pyelmo.encoders import open_encoder
        >>> encoder = open_encoder("en")
        >>> encoder.name, encoder.facts["precision"]
        ('en', 'float32')
        >>> [vectors.shape for vectors in encoder.embed_own_tokens([["A", "bank", "account"]])]
        [(3, 3, 1024)]
    """

    def __init__(self, name: str, facts: dict[str, Any], read: Callable[[], LoadedEncoder]) -> None:
        """Create an encoder.

        Args:
            name: The name shown in tables and reports.
            facts: What identifies the model.
            read: A function that reads the weights; it is called once.
        """
        self.name, self.facts, self._read = name, facts, read

    def __repr__(self) -> str:
        return f"NamedEncoder({self.name!r})"

    @functools.cached_property
    def loaded(self) -> LoadedEncoder:
        """The encoder with its weights, which are read now if they have not been read before."""
        return self._read()

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers, the lowest first."""
        return self.loaded.layers

    def __call__(self, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        """Embed sentences of whole words.

        Args:
            sentences: Sentences as lists of words, split as in treebanks and word lists.

        Returns:
            An iterator over arrays (layers, words, vector size), one for each sentence.
        """
        embed = self.loaded.embed
        if self.loaded.language == _MORPHEMES:
            embed = pool_morphemes(embed, _MORPHEMES)
        yield from embed(sentences)

    def embed_own_tokens(self, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
        """Embed sentences that were split by the rules of the encoder's own language.

        Args:
            sentences: Sentences as lists of tokens of `loaded.language`, morphemes for example.

        Returns:
            An iterator over arrays (layers, tokens, vector size), one for each sentence.
        """
        yield from self.loaded.embed(sentences)


def encode(embed: Encoder, sentences: Sequence[list[str]]) -> Iterator[Float32Array]:
    """Return the arrays (L, T, D) of all sentences, and check their number and shapes."""
    count = 0
    for vectors in embed(sentences):
        if count == len(sentences):
            raise InputError(f"the encoder returned more than {len(sentences)} arrays, one for each sentence")
        words = sentences[count]
        if vectors.ndim != 3 or vectors.shape[1] != len(words):
            raise InputError(
                f"the encoder returned an array of shape {vectors.shape} for sentence {count} of {len(words)} words; "
                f"expected (layers, {len(words)}, vector size)"
            )
        yield vectors
        count += 1
    if count < len(sentences):
        raise InputError(f"the encoder returned {count} arrays for {len(sentences)} sentences")


def batches_by_length(
    sentences: Sequence[list[str]], batch_size: int, run: Callable[[list[list[str]]], Sequence[Float32Array]]
) -> Iterator[Float32Array]:
    """Run batches of sentences of similar length, and return the arrays in the order of the sentences."""
    for start in range(0, len(sentences), _WINDOW * batch_size):
        window = sentences[start : start + _WINDOW * batch_size]
        order = sorted(range(len(window)), key=lambda row: len(window[row]))
        arrays: dict[int, Float32Array] = {}
        for first in range(0, len(window), batch_size):
            rows = order[first : first + batch_size]
            arrays.update(zip(rows, run([window[row] for row in rows]), strict=True))
        for row in range(len(window)):
            yield arrays.pop(row)


def pool_morphemes(embed: Encoder, language: str) -> Encoder:
    """Return an encoder of whole words for a model whose tokens are smaller, such as morphemes.

    A word's vector is the mean over the tokens that begin in the word. A word in which no token begins has the vector
    of the token that extends into it.
    """

    def encoder(sentences: Sequence[list[str]], /) -> Iterator[Float32Array]:
        split = [split_within(words, language) for words in sentences]
        arrays = encode(embed, [tokens for tokens, _ in split])
        for (_, groups), layers in zip(split, arrays, strict=True):
            yield pool_words(layers, groups)

    return encoder
