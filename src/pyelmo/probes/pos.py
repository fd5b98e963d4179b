"""Parts of speech by a linear probe on each layer, from Universal Dependencies' CoNLL-U files.

A probe might learn the tags by heart, word by word. The control task (Hewitt & Liang 2019) shows how far that goes:
each word type gets a label by lot, as frequent as the tags are, and a probe learns those. Selectivity is the accuracy
on the tags less that on the control task.

L layers, N words of a treebank, D vector.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from pyelmo.arrays import Int64Array
from pyelmo.encoders.base import Encoder, encode
from pyelmo.errors import FormatError, InputError
from pyelmo.probes import linear
from pyelmo.text.lines import check_published, existing, numbered_lines

# Sentences of the treebanks as published (later releases may have a few more), so that a cut copy is noticed.
SENTENCES = {
    "en_ewt-ud-train": 12_543, "en_ewt-ud-dev": 2001, "en_ewt-ud-test": 2077,
    "ko_kaist-ud-train": 23_010, "ko_kaist-ud-dev": 2066, "ko_kaist-ud-test": 2287,
    "ko_gsd-ud-train": 4400, "ko_gsd-ud-dev": 950, "ko_gsd-ud-test": 989,
}  # fmt: skip
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
    control: tuple[float, ...] | None = None  # accuracy on the control task, by layer
    selectivity: tuple[float, ...] | None = None


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
    check_published(path, len(sentences), SENTENCES.get(Path(path).stem), "sentences")
    return sentences


def evaluate(
    embed: Encoder,
    train: Sequence[TaggedSentence],
    test: Sequence[TaggedSentence],
    settings: linear.ProbeSettings | None = None,
    *,
    control: bool = False,
    progress: bool = False,
) -> PosResult:
    """The accuracy of one probe a layer; nothing is chosen by what comes out. `control` adds the control task."""
    if not train or not test:
        raise InputError("the probe needs sentences to train on and sentences to test")
    tags = sorted({tag for sentence in train for tag in sentence.tags})
    numbers = {tag: number for number, tag in enumerate(tags)}
    tasks = [(_labels(train, numbers), _labels(test, numbers))]
    if control:
        tasks.append(_control_labels(train, test, tasks[0][0], (settings or linear.ProbeSettings()).seed))
    train_vectors, test_vectors = _vectors(embed, train), _vectors(embed, test)
    accuracy = np.zeros((len(tasks), len(train_vectors)))
    with tqdm(total=accuracy.size, unit=" probes", desc="  probing", disable=not progress) as bar:
        for task, (train_labels, test_labels) in enumerate(tasks):
            for layer, (known, new) in enumerate(zip(train_vectors, test_vectors, strict=True)):
                probe = linear.fit(known, train_labels, len(tags), settings)
                accuracy[task, layer] = probe.accuracy(new, test_labels)
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
    """A label for each word type, drawn from the tags of the training words, the same wherever the word stands."""
    parts = [[word for sentence in part for word in sentence.words] for part in (train, test)]
    types = sorted(set(parts[0]).union(parts[1]))
    drawn = np.random.default_rng(seed).choice(tags, size=len(types)).tolist()
    labels = dict(zip(types, drawn, strict=True))
    known, new = (np.array([labels[word] for word in words], dtype=np.int64) for words in parts)
    return known, new


def _labels(sentences: Sequence[TaggedSentence], numbers: dict[str, int]) -> Int64Array:
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
