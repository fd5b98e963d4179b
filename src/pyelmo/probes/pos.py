"""Part-of-speech tags by a linear probe on each layer, on the CoNLL-U files of Universal Dependencies.

A probe may memorise the tag of each word. The control task (Hewitt & Liang 2019) measures how much: each word type gets
a random label, with the frequencies of the tags, and a probe learns these labels. Selectivity is the accuracy on the
tags minus the accuracy on the control task.

L layers, N words of a treebank, D vector.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pyelmo.arrays import Int64Array
from pyelmo.encoders.base import Encoder, encode
from pyelmo.errors import FormatError, InputError, require_torch
from pyelmo.files import open_regular
from pyelmo.text.lines import check_published, existing, numbered_lines

if TYPE_CHECKING:
    from pyelmo.probes.linear import ProbeSettings

log = logging.getLogger("pyelmo")
# The number of sentences as published, to detect incomplete copies. Later releases may have a few more.
SENTENCES = {
    "en_ewt-ud-train": 12_543, "en_ewt-ud-dev": 2001, "en_ewt-ud-test": 2077,
    "ko_kaist-ud-train": 23_010, "ko_kaist-ud-dev": 2066, "ko_kaist-ud-test": 2287,
    "ko_gsd-ud-train": 4400, "ko_gsd-ud-dev": 950, "ko_gsd-ud-test": 989,
}  # fmt: skip
_COLUMNS = 10
_WORD, _TAG = 1, 3


@dataclass(frozen=True)
class TaggedSentence:
    """Words and their universal part-of-speech tags."""

    words: list[str]
    tags: list[str]


@dataclass(frozen=True)
class PosResult:
    """Accuracy on the test set, in percent."""

    accuracy: tuple[float, ...]  # by layer
    baseline: float  # each word's most frequent tag in the train set; for an unseen word the most frequent tag of all
    tags: tuple[str, ...]
    train_words: int
    test_words: int
    control: tuple[float, ...] | None = None  # accuracy on the control task, by layer
    selectivity: tuple[float, ...] | None = None


def read_conllu(path: str | Path) -> list[TaggedSentence]:
    """Read the words of a treebank and their universal tags.

    A contraction such as "don't" is read as its syntactic words. Empty nodes are skipped.
    """
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
                    f"{path}, line {number}: {len(columns)} columns, expected {_COLUMNS} columns separated by tabs"
                )
            if not columns[0].isdigit():  # 3-4 is a contraction, 8.1 an empty node
                continue
            if columns[0] != str(len(words) + 1) or not columns[_WORD] or not columns[_TAG].isalpha():
                raise FormatError(
                    f"{path}, line {number}: expected word {len(words) + 1} with a tag, got {line[:60]!r}"
                )
            words.append(columns[_WORD])
            tags.append(columns[_TAG])
        elif words:
            sentences.append(TaggedSentence(words, tags))
            words, tags = [], []
    if words:
        log.warning("%s: no empty line after the last sentence, which may be incomplete", path)
        sentences.append(TaggedSentence(words, tags))
    check_published(path, len(sentences), None, "sentences")
    published = SENTENCES.get(Path(path).stem, 0)
    if len(sentences) < published:
        log.warning(
            "%s: %d sentences, %d as published. Figures of a part of a treebank do not compare with others.",
            path, len(sentences), published,
        )  # fmt: skip
    return sentences


def count_missing(path: Path) -> int:
    """Return how many sentences of the published treebank a file lacks; 0 for other treebanks."""
    with open_regular(path) as file:
        count = sum(line.startswith(b"1\t") for line in file)
    return max(SENTENCES.get(path.stem, 0) - count, 0)


def evaluate(
    embed: Encoder,
    train: Sequence[TaggedSentence],
    test: Sequence[TaggedSentence],
    settings: ProbeSettings | None = None,
    *,
    control: bool = False,
    progress: bool = False,
) -> PosResult:
    """Return the accuracy of a probe on each layer. `control` adds the control task."""
    require_torch("The probe pos")
    from pyelmo.probes import linear

    if not train or not test:
        raise InputError("the train set or the test set has no sentences")
    tags = sorted({tag for sentence in train for tag in sentence.tags})
    numbers = {tag: number for number, tag in enumerate(tags)}
    tasks = [(_labels(train, numbers), _labels(test, numbers))]
    if control:
        tasks.append(_control_labels(train, test, tasks[0][0], (settings or linear.ProbeSettings()).seed))
    train_vectors, test_vectors = _vectors(embed, train), _vectors(embed, test)
    accuracy = np.zeros((len(tasks), len(train_vectors)))
    with tqdm(total=accuracy.size, unit=" probes", desc="  probing", disable=not progress) as bar:
        for task, (train_labels, test_labels) in enumerate(tasks):
            for layer, (train_layer, test_layer) in enumerate(zip(train_vectors, test_vectors, strict=True)):
                probe = linear.fit(train_layer, train_labels, len(tags), settings)
                accuracy[task, layer] = probe.accuracy(test_layer, test_labels)
                bar.update()
    return PosResult(
        accuracy=tuple(accuracy[0].tolist()),
        baseline=_baseline(train, test),
        tags=tuple(tags),
        train_words=len(tasks[0][0]),
        test_words=len(tasks[0][1]),
        control=tuple(accuracy[1].tolist()) if control else None,
        selectivity=tuple((accuracy[0] - accuracy[1]).tolist()) if control else None,
    )


def _control_labels(
    train: Sequence[TaggedSentence], test: Sequence[TaggedSentence], tags: Int64Array, seed: int
) -> tuple[Int64Array, Int64Array]:
    """Give each word type a random label, drawn from the tags of the train set."""
    train_words, test_words = ([word for sentence in data for word in sentence.words] for data in (train, test))
    types = sorted(set(train_words).union(test_words))
    drawn = np.random.default_rng(seed).choice(tags, size=len(types)).tolist()
    labels = dict(zip(types, drawn, strict=True))
    train_labels = np.array([labels[word] for word in train_words], dtype=np.int64)
    return train_labels, np.array([labels[word] for word in test_words], dtype=np.int64)


def _labels(sentences: Sequence[TaggedSentence], numbers: dict[str, int]) -> Int64Array:
    """Return the numbers of the tags; a tag that is not in the train set is -1, which is always wrong."""
    return np.array([numbers.get(tag, -1) for sentence in sentences for tag in sentence.tags], dtype=np.int64)


def _vectors(embed: Encoder, sentences: Sequence[TaggedSentence]) -> npt.NDArray[np.float16]:
    """Return the vectors of all words, (L, N, D), as float16 to halve the memory."""
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
    default = sum(counts.values(), Counter[str]()).most_common(1)[0][0]
    most_frequent = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    pairs = [pair for sentence in test for pair in zip(sentence.words, sentence.tags, strict=True)]
    return 100 * sum(most_frequent.get(word, default) == tag for word, tag in pairs) / len(pairs)
