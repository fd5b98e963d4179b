"""Parts of speech by a linear probe on each layer, from Universal Dependencies' CoNLL-U files.

L layers, N words of a treebank, D vector.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pyelmo.errors import FormatError, InputError
from pyelmo.probes import linear
from pyelmo.probes.encoder import Encoder, encode, existing, numbered_lines

_COLUMNS = 10
_WORD, _TAG = 1, 3


@dataclass(frozen=True)
class TaggedSentence:
    words: list[str]
    tags: list[str]


@dataclass(frozen=True)
class PosResult:
    """Accuracy in percent of the test words."""

    accuracy: tuple[float, ...]  # by layer
    baseline: float  # each word's most frequent tag in the training part; the most frequent of all for a new word
    tags: tuple[str, ...]
    train_words: int
    test_words: int


def read_conllu(path: str | Path) -> list[TaggedSentence]:
    """The words of a treebank with their universal tags: of "don't" the parts that are tagged, and no empty nodes."""
    sentences: list[TaggedSentence] = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in numbered_lines(existing(path)):
        if line.startswith("#"):
            continue
        if line.strip():
            columns = line.split("\t")
            if len(columns) != _COLUMNS:
                raise FormatError(
                    f"{path}, line {number}: {len(columns)} columns, expected {_COLUMNS} with tabs between"
                )
            if not columns[0].isdigit():  # 3-4: a word of several parts that follow; 8.1: a word that is not there
                continue
            if int(columns[0]) != len(words) + 1 or not columns[_WORD] or not columns[_TAG].isalpha():
                raise FormatError(
                    f"{path}, line {number}: expected word {len(words) + 1} with a tag, got {line[:60]!r}"
                )
            words.append(columns[_WORD])
            tags.append(columns[_TAG])
        elif words:
            sentences.append(TaggedSentence(words, tags))
            words, tags = [], []
    if words:
        raise FormatError(f"{path}, line {number}: no empty line after the last sentence. Is the file cut off?")
    if not sentences:
        raise FormatError(f"{path}: holds no sentence")
    return sentences


def evaluate(
    embed: Encoder,
    train: Sequence[TaggedSentence],
    test: Sequence[TaggedSentence],
    settings: linear.ProbeSettings | None = None,
) -> PosResult:
    """The accuracy of one probe a layer; nothing is chosen by what comes out."""
    if not train or not test:
        raise InputError("the probe needs sentences to train on and sentences to test")
    tags = sorted({tag for sentence in train for tag in sentence.tags})
    numbers = {tag: number for number, tag in enumerate(tags)}
    train_labels, test_labels = _labels(train, numbers), _labels(test, numbers)
    train_vectors, test_vectors = _vectors(embed, train), _vectors(embed, test)
    accuracy = []
    for known, new in zip(train_vectors, test_vectors, strict=True):
        probe = linear.fit(known, train_labels, len(tags), settings)
        accuracy.append(probe.accuracy(new, test_labels))
    return PosResult(tuple(accuracy), _baseline(train, test), tuple(tags), len(train_labels), len(test_labels))


def _labels(sentences: Sequence[TaggedSentence], numbers: dict[str, int]) -> linear.Labels:
    """Numbers of the tags; one that the training part lacks is -1, and never right."""
    return np.array([numbers.get(tag, -1) for sentence in sentences for tag in sentence.tags], dtype=np.int64)


def _vectors(embed: Encoder, sentences: Sequence[TaggedSentence]) -> npt.NDArray[np.float16]:
    """All words side by side, (L, N, D), in half the memory that the vectors had."""
    count = sum(len(sentence.words) for sentence in sentences)
    vectors: npt.NDArray[np.float16] | None = None
    start = 0
    for layers in encode(embed, [sentence.words for sentence in sentences]):
        if vectors is None:
            vectors = np.empty((len(layers), count, layers.shape[2]), dtype=np.float16)
        vectors[:, start : start + layers.shape[1]] = layers
        start += layers.shape[1]
    assert vectors is not None
    return vectors


def _baseline(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> float:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            counts[word][tag] += 1
    most = sum(counts.values(), Counter[str]()).most_common(1)[0][0]
    usual = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    pairs = [pair for sentence in test for pair in zip(sentence.words, sentence.tags, strict=True)]
    return 100 * sum(usual.get(word, most) == tag for word, tag in pairs) / len(pairs)
