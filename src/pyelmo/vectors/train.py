"""Training of static vectors with gensim (extra `vectors`): a prepared corpus -> StaticVectors.

With one worker, the same corpus, settings and versions give the same vectors to the bit. Several workers update the
shared vectors without locks, so their results differ from run to run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pyelmo.corpus.corpus import Corpus
from pyelmo.errors import ConfigError, FormatError, InputError, missing_extra
from pyelmo.vectors.fasttext import Subwords
from pyelmo.vectors.static import StaticVectors

MODELS = ("skip-gram", "cbow")
LOSSES = ("negative", "hierarchical")
_SPECIAL = 3  # <S>, </S> and <UNK> are not words
_BLOCK = 4096  # sentences that are turned into words at a time
_LONGEST = 10_000  # words; gensim truncates longer sentences, so they are split


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """The settings of training: the defaults of word2vec, and those of fastText for n-grams."""

    model: str = "skip-gram"
    loss: str = "negative"  # negative sampling or hierarchical softmax
    subwords: bool = False  # fastText: a word's vector is the mean over its n-grams
    dim: int = 100
    window: int = 5  # maximal number of context words on each side
    negative: int = 5  # negative samples for each word
    min_count: int = 5  # rarer words are ignored
    epochs: int = 5
    lr: float = 0.025  # initial learning rate, with linear decay to 0.0001
    sample: float = 1e-3  # words with a larger share of the text are downsampled
    lowercase: bool = False
    ngrams: tuple[int, int] = (3, 6)  # shortest and longest n-gram, in characters
    buckets: int = 2_000_000  # rows of the n-gram table, which n-grams share by hash
    workers: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.model not in MODELS or self.loss not in LOSSES:
            known = f"a model of {', '.join(MODELS)} and a loss of {', '.join(LOSSES)}"
            raise ConfigError(f"model {self.model!r} with loss {self.loss!r} is unknown. Use {known}.")
        for name in ("dim", "window", "negative", "min_count", "epochs", "buckets", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 1 <= self.ngrams[0] <= self.ngrams[1]:
            raise ConfigError(f"ngrams is {self.ngrams}; expected the shortest length, at least 1, and the longest")
        if self.lr <= 0 or self.sample < 0 or self.seed < 0:
            raise ConfigError(f"lr {self.lr} must be more than 0, sample {self.sample} and seed {self.seed} at least 0")


def train(folder: str | Path, settings: VectorSettings | None = None, *, progress: bool = False) -> StaticVectors:
    """Train vectors on a prepared corpus, which is read from disk in each epoch.

    Args:
        folder: A corpus that `elmo prepare` wrote.
        settings: The settings of training (default: those of word2vec).
        progress: Show a progress bar.

    Returns:
        The vectors.

    Raises:
        MissingExtraError: gensim is not installed.
        InputError: No word occurs `min_count` times.
        FormatError: The corpus is damaged.
    """
    settings = settings or VectorSettings()
    corpus = Corpus.open(folder)
    try:
        from gensim.models import FastText, Word2Vec
    except ImportError:
        raise missing_extra("vectors", "training static vectors") from None
    words, counts = _spellings(corpus, lowercase=settings.lowercase)
    frequent = {word: count for word, count in counts.items() if count >= settings.min_count}
    if not frequent:
        raise InputError(f"{folder}: no word occurs {settings.min_count} times. Use more text, or a smaller min_count.")
    # The learning rate decays with the number of words read, which includes rare words.
    total = corpus.manifest.train.words
    options: dict[str, Any] = {
        "vector_size": settings.dim, "window": settings.window, "min_count": settings.min_count,
        "sg": int(settings.model == "skip-gram"), "hs": int(settings.loss == "hierarchical"),
        "negative": settings.negative if settings.loss == "negative" else 0, "epochs": settings.epochs,
        "alpha": settings.lr, "sample": settings.sample, "workers": settings.workers, "seed": settings.seed,
    }  # fmt: skip
    if settings.subwords:
        shortest, longest = settings.ngrams
        model = FastText(**options, min_n=shortest, max_n=longest, bucket=settings.buckets)
    else:
        model = Word2Vec(**options)
    model.build_vocab_from_freq(frequent, corpus_count=corpus.manifest.train.sentences)
    model.corpus_total_words = total  # gensim cannot know it from counts, and writes it into a .bin file
    text = _Text(corpus, words, total * settings.epochs, progress=progress)
    try:
        with warnings.catch_warnings():  # gensim warns about its own defaults
            warnings.simplefilter("ignore")
            model.train(corpus_iterable=text, total_words=total, epochs=settings.epochs)
    finally:
        text.close()
    if text.error is not None:
        raise text.error
    subwords = Subwords(model.wv.vectors_ngrams, *settings.ngrams) if settings.subwords else None
    trained = model if settings.subwords else None
    return StaticVectors(model.wv.index_to_key, model.wv.vectors, subwords=subwords, name=str(folder), trained=trained)


def _spellings(corpus: Corpus, *, lowercase: bool) -> tuple[npt.NDArray[np.object_], dict[str, int]]:
    """Return the word of each id, and the count of each word."""
    types = [word.lower() for word in corpus.types] if lowercase else list(corpus.types)
    types[:_SPECIAL] = corpus.types[:_SPECIAL]
    counts: dict[str, int] = {}
    for word, count in zip(types[_SPECIAL:], corpus.counts[_SPECIAL:].tolist(), strict=True):
        counts[word] = counts.get(word, 0) + count
    return np.array(types, dtype=object), counts


class _Text:
    """The sentences of a corpus as lists of words, which can be iterated several times.

    gensim iterates in a thread of its own, and would wait forever after an error there. So an error is stored in
    `error`, and the iteration ends.
    """

    def __init__(self, corpus: Corpus, words: npt.NDArray[np.object_], total: int, *, progress: bool) -> None:
        from tqdm import tqdm

        self.corpus, self.words = corpus, words
        self.error: Exception | None = None
        self.bar = tqdm(total=total, unit=" words", unit_scale=True, file=sys.stderr, disable=not progress)

    def __iter__(self) -> Iterator[list[str]]:
        try:
            yield from self._sentences()
        except IndexError:
            self.error = FormatError(
                f"{self.corpus.folder}: the corpus contains an id that is not in types.txt. Prepare the corpus again."
            )
        except Exception as error:
            self.error = error

    def _sentences(self) -> Iterator[list[str]]:
        for ids, starts in zip(self.corpus.shards(), self.corpus.sentence_starts(), strict=True):
            for first in range(0, len(starts) - 1, _BLOCK):
                bounds = starts[first : first + _BLOCK + 1]
                text = self.words[ids[bounds[0] : bounds[-1]]].tolist()
                offsets = (bounds - bounds[0]).tolist()
                for start, end in pairwise(offsets):
                    for piece in range(start, end - 1, _LONGEST):
                        yield text[piece : min(piece + _LONGEST, end - 1)]
                self.bar.update(len(text) - len(bounds) + 1)

    def close(self) -> None:
        self.bar.close()
