"""Word sense disambiguation by the nearest sense, layer by layer (Peters et al. 2018, section 5.3).

    SemCor --> a vector for each sense: the mean over its occurrences
    a word of the test set --> the nearest sense (by cosine) of its lemma and part of speech, or WordNet's first sense
    if the lemma does not occur in SemCor

L layers, D vector, S senses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder, encode
from pyelmo.errors import InputError
from pyelmo.probes.in_context import is_nearest
from pyelmo.probes.wsd_data import Instance, Lemma, WsdSentence, lemma_of
from pyelmo.vectors.static import unit_vectors

PARTS_OF_SPEECH = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}


@dataclass(frozen=True)
class WsdResult:
    """F1 in percent. Every word has an answer, so it equals precision, recall and accuracy."""

    f1: tuple[float, ...]  # by layer
    by_set: dict[str, tuple[float, ...]]  # for each data set of the test set, by the prefix of its instance ids
    by_pos: dict[str, tuple[float, ...]]  # for nouns, verbs, adjectives and adverbs
    first_sense: float  # F1 of WordNet's first sense
    words: int  # annotated words of the test set
    unseen: int  # words of the test set whose lemma is not in the train set
    senses: int  # senses with a vector
    occurrences: int  # annotated words of the train set


@dataclass(frozen=True)
class SenseVectors:
    """Unit vectors of senses. `rows` are those of each lemma, the most frequent sense first."""

    keys: list[str]
    vectors: Float32Array  # (L, S, D)
    rows: dict[Lemma, list[int]]

    def nearest(self, lemma: Lemma, vector: Float32Array) -> list[str]:  # vector: (L, D)
        """Return the sense of a lemma that is nearest to a vector, for each layer. Of ties, the most frequent wins.

        In a layer without context all occurrences of a word have the same vector, so many senses are equally near.
        """
        rows = self.rows[lemma]
        cosines = np.einsum("lsd,ld->ls", self.vectors[:, rows], unit_vectors(vector))
        return [self.keys[rows[best]] for best in is_nearest(cosines).argmax(1)]


def evaluate(
    embed: Encoder, training: Sequence[WsdSentence], test: Sequence[WsdSentence], first_senses: Mapping[Lemma, str]
) -> WsdResult:
    """Return the F1 of the probe; `wsd_data` has the readers of its arguments."""
    senses = sense_vectors(embed, training)
    right: dict[str, list[list[bool]]] = defaultdict(list)
    right_by_pos: dict[str, list[list[bool]]] = {name: [] for name in PARTS_OF_SPEECH.values()}
    first, unseen = [], 0
    for instance, vector in _vectors(embed, test):
        fallback = first_senses.get(instance.lemma, "")
        first.append(fallback in instance.senses)
        if instance.lemma in senses.rows:
            answers = senses.nearest(instance.lemma, vector)
        else:
            answers, unseen = [fallback] * len(vector), unseen + 1
        hits = [answer in instance.senses for answer in answers]
        right[instance.id.partition(".")[0]].append(hits)
        right_by_pos[PARTS_OF_SPEECH[instance.lemma.pos]].append(hits)
    if not first:
        raise InputError("the test set has no annotated word")
    all_hits = [hits for rows in right.values() for hits in rows]
    return WsdResult(
        f1=_percent(all_hits),
        by_set={name: _percent(rows) for name, rows in right.items()},
        by_pos={name: _percent(rows) for name, rows in right_by_pos.items() if rows},
        first_sense=100 * sum(first) / len(first),
        words=len(first),
        unseen=unseen,
        senses=len(senses.keys),
        occurrences=sum(len(sentence.instances) for sentence in training),
    )


def sense_vectors(embed: Encoder, training: Sequence[WsdSentence]) -> SenseVectors:
    """Return the mean vector of each sense. An occurrence with several senses counts for each of them."""
    numbers: dict[str, int] = {}
    for sentence in training:
        for instance in sentence.instances:
            for sense in instance.senses:
                numbers.setdefault(sense, len(numbers))
    if not numbers:
        raise InputError("the train set has no annotated word")
    sums: Float32Array | None = None
    counts = np.zeros(len(numbers), dtype=np.int64)
    for instance, vector in _vectors(embed, training):
        if sums is None:
            sums = np.zeros((len(numbers), *vector.shape), dtype=np.float32)
        for sense in instance.senses:
            sums[numbers[sense]] += vector
            counts[numbers[sense]] += 1
    assert sums is not None
    rows: dict[Lemma, list[int]] = defaultdict(list)
    keys = list(numbers)
    for number in np.argsort(-counts, kind="stable").tolist():
        rows[lemma_of(keys[number])].append(number)
    # A cosine depends only on the direction, which is the same for the sum and the mean.
    return SenseVectors(keys, unit_vectors(sums).transpose(1, 0, 2), dict(rows))


def _vectors(embed: Encoder, sentences: Sequence[WsdSentence]) -> Iterator[tuple[Instance, Float32Array]]:
    """Return every annotated word with its vectors (L, D); an expression of several words has their mean."""
    annotated = [sentence for sentence in sentences if sentence.instances]
    arrays = encode(embed, [sentence.words for sentence in annotated])
    for sentence, layers in zip(annotated, arrays, strict=True):
        for instance in sentence.instances:
            yield instance, layers[:, instance.start : instance.end].mean(1, dtype=np.float32)


def _percent(right: Sequence[Sequence[bool]]) -> tuple[float, ...]:
    return tuple((100 * np.asarray(right).mean(0)).tolist())
