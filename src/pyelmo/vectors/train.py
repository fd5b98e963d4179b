"""Training of static vectors through gensim (extra `vectors`): a prepared corpus -> StaticVectors.

With one worker the same corpus, settings and versions give the same vectors, bit by bit; several workers write to the
shared vectors without waiting for each other, and no two runs agree.
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
_MARKS = 3  # <S>, </S>, <UNK> are no words
_BLOCK = 4096  # sentences that are words at a time
_LONGEST = 10_000  # words; gensim drops the rest of a longer sentence


@dataclass(frozen=True, kw_only=True)
class VectorSettings:
    """The usual values of word2vec; those of n-grams are fastText's."""

    model: str = "skip-gram"
    loss: str = "negative"  # negative sampling, or hierarchical softmax
    subwords: bool = False  # fastText: a word is the mean of its n-grams
    dim: int = 100
    window: int = 5  # words to each side at most
    negative: int = 5  # samples a word
    min_count: int = 5  # rarer words are left out
    epochs: int = 5
    lr: float = 0.025  # falls to 0.0001 in a straight line
    sample: float = 1e-3  # words more frequent than this share are read less often
    lowercase: bool = False
    ngrams: tuple[int, int] = (3, 6)  # shortest and longest, in characters
    buckets: int = 2_000_000  # rows that n-grams share by hash
    workers: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.model not in MODELS or self.loss not in LOSSES:
            known = f"one of {', '.join(MODELS)} and one of {', '.join(LOSSES)}"
            raise ConfigError(f"model {self.model!r} with loss {self.loss!r} is not known. Use {known}.")
        for name in ("dim", "window", "negative", "min_count", "epochs", "buckets", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 1 <= self.ngrams[0] <= self.ngrams[1]:
            raise ConfigError(f"ngrams is {self.ngrams}; expected the shortest and the longest length")
        if self.lr <= 0 or self.sample < 0 or self.seed < 0:
            raise ConfigError(f"lr {self.lr} must be more than 0, sample {self.sample} and seed {self.seed} at least 0")


def train(folder: str | Path, settings: VectorSettings | None = None, *, progress: bool = False) -> StaticVectors:
    """Train on the corpus in `folder` (made by elmo prepare); the text is read from disk in each epoch."""
    settings = settings or VectorSettings()
    try:
        from gensim.models import FastText, Word2Vec
    except ImportError:
        raise missing_extra("vectors", "training static vectors") from None
    corpus = Corpus.open(folder)
    words, counts = _spellings(corpus, lowercase=settings.lowercase)
    kept = {word: count for word, count in counts.items() if count >= settings.min_count}
    if not kept:
        raise InputError(f"{folder}: no word occurs {settings.min_count} times. Use more text or a smaller min_count.")
    # A learning rate that falls with the words read needs their number, rare ones counted in.
    total = corpus.manifest.train.words
    options: dict[str, Any] = {
        "vector_size": settings.dim, "window": settings.window, "min_count": settings.min_count,
        "sg": int(settings.model == "skip-gram"), "hs": int(settings.loss == "hierarchical"),
        "negative": settings.negative if settings.loss == "negative" else 0, "epochs": settings.epochs,
        "alpha": settings.lr, "sample": settings.sample, "workers": settings.workers, "seed": settings.seed,
    }  # fmt: skip
    if settings.subwords:
        least, most = settings.ngrams
        model = FastText(**options, min_n=least, max_n=most, bucket=settings.buckets)
    else:
        model = Word2Vec(**options)
    model.build_vocab_from_freq(kept, corpus_count=corpus.manifest.train.sentences)
    model.corpus_total_words = total  # gensim does not know it from counts, and writes it into a .bin
    text = _Text(corpus, words, total * settings.epochs, progress=progress)
    try:
        with warnings.catch_warnings():  # gensim warns of its own defaults
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
    """The word of each id, and how often each word stands in the text."""
    types = [word.lower() for word in corpus.types] if lowercase else list(corpus.types)
    types[:_MARKS] = corpus.types[:_MARKS]
    counts: dict[str, int] = {}
    for word, count in zip(types[_MARKS:], corpus.counts[_MARKS:].tolist(), strict=True):
        counts[word] = counts.get(word, 0) + count
    return np.array(types, dtype=object), counts


class _Text:
    """The sentences of a corpus as lists of words, as often as asked. gensim reads it in a thread of its own, where an
    error would leave it waiting for ever: it is kept here instead, and the text ends."""

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
                f"{self.corpus.folder}: holds an id that types.txt lacks. Prepare the corpus again."
            )
        except Exception as error:
            self.error = error

    def _sentences(self) -> Iterator[list[str]]:
        for ids, starts in zip(self.corpus.shards(), self.corpus.sentence_starts(), strict=True):
            for first in range(0, len(starts) - 1, _BLOCK):
                places = starts[first : first + _BLOCK + 1]
                text = self.words[ids[places[0] : places[-1]]].tolist()
                offsets = (places - places[0]).tolist()
                for start, end in pairwise(offsets):
                    for piece in range(start, end - 1, _LONGEST):
                        yield text[piece : min(piece + _LONGEST, end - 1)]
                self.bar.update(len(text) - len(places) + 1)

    def close(self) -> None:
        self.bar.close()
