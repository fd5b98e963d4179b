"""Do the nearest occurrences of a word have its sense? (Peters et al. 2018, table 4, for "play" in SemCor.)

L layers, N annotated occurrences, S senses, D vector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyelmo.arrays import Float32Array
from pyelmo.encoders.base import Encoder, encode
from pyelmo.errors import InputError
from pyelmo.probes.in_context import ROUNDING
from pyelmo.probes.wsd_data import WsdSentence, lemma_of
from pyelmo.vectors.static import unit_vectors

# "play" in sport and in theatre, as WordNet 3.0 tells its senses apart: what happens in a game, and a drama as written
# or performed; then the verbs too: to take part in a game, and to have a role on the stage.
PLAY_NOUNS = {
    "sport": ("play%1:04:04::", "play%1:04:05::"),
    "theatre": ("play%1:10:01::", "play%1:10:03::"),
}
PLAY = {
    "sport": (*PLAY_NOUNS["sport"], "play%2:33:00::"),
    "theatre": (*PLAY_NOUNS["theatre"], "play%2:36:02::"),
}


@dataclass(frozen=True)
class NeighbourSenses:
    """The share in percent of the nearest occurrences that have the sense of the one asked about.

    Of equally near ones, as in a layer without context, each counts in part.
    """

    layers: tuple[float, ...]
    mean: float  # for the plain mean of the layers
    by_sense: dict[str, tuple[float, ...]]  # by layer, then for the mean
    chance: dict[str, float]  # for neighbours drawn by lot
    queries: dict[str, int]  # occurrences of each sense
    candidates: int  # annotated occurrences of the word, in any sense
    neighbours: int  # the nearest that count


def senses_of_neighbours(
    embed: Encoder, sentences: Sequence[WsdSentence], senses: Mapping[str, Collection[str]], *, count: int = 10
) -> NeighbourSenses:
    """Ask about every occurrence of some senses; each is a name for WordNet's sense keys of one word.

    The neighbours are the `count` nearest among all annotated occurrences, in other sentences, of the word and the
    parts of speech that the keys have.
    """
    lemmas = {lemma_of(key) for keys in senses.values() for key in keys}
    held = [sentence for sentence in sentences if any(instance.lemma in lemmas for instance in sentence.instances)]
    vectors, places, of = [], [], []
    for place, (sentence, layers) in enumerate(
        zip(held, encode(embed, [sentence.words for sentence in held]), strict=True)
    ):
        for instance in sentence.instances:
            if instance.lemma in lemmas:
                vectors.append(layers[:, instance.start : instance.end].mean(1, dtype=np.float32))  # (L, D)
                places.append(place)
                of.append([not set(keys).isdisjoint(instance.senses) for keys in senses.values()])
    has = np.array(of, dtype=bool).reshape(-1, len(senses))  # (N, S)
    for name, number in zip(senses, has.sum(0).tolist(), strict=True):
        if number < 2:
            raise InputError(f"the sense {name!r} has {number} occurrences in the text; two or more are needed")
    sentence_of = np.array(places)
    others = sentence_of[:, None] != sentence_of  # (N, N)
    if others.sum(1).min() < count:
        raise InputError(f"{count} neighbours are asked for, and {len(has)} occurrences are too few for that")
    same = (has.astype(int) @ has.T > 0) & others
    stacked = np.stack(vectors, axis=1)  # (L, N, D)
    kinds = np.concatenate([stacked, stacked.mean(0, keepdims=True)])
    shares = 100 * np.stack([_shares(kind, same, others, count) for kind in kinds])  # (L + 1, N)
    chance = 100 * same.sum(1) / others.sum(1)
    asked = has.any(1)
    return NeighbourSenses(
        layers=tuple(shares[:-1, asked].mean(1).tolist()),
        mean=float(shares[-1, asked].mean()),
        by_sense={name: tuple(shares[:, rows].mean(1).tolist()) for name, rows in zip(senses, has.T, strict=True)},
        chance={name: float(chance[rows].mean()) for name, rows in zip(senses, has.T, strict=True)},
        queries={name: int(rows.sum()) for name, rows in zip(senses, has.T, strict=True)},
        candidates=len(has),
        neighbours=count,
    )


def _shares(
    vectors: Float32Array, same: npt.NDArray[np.bool_], others: npt.NDArray[np.bool_], count: int
) -> npt.NDArray[np.float64]:  # (N, D), (N, N), (N, N) -> (N,)
    scaled = unit_vectors(vectors)
    cosines = np.where(others, scaled @ scaled.T, -np.inf)
    last = -np.partition(-cosines, count - 1)[:, count - 1 : count]  # that of the last neighbour that counts
    sure = cosines > last + ROUNDING
    tied = ~sure & (cosines >= last - ROUNDING)
    left = count - sure.sum(1)
    found: npt.NDArray[np.float64] = ((sure & same).sum(1) + left * (tied & same).sum(1) / tied.sum(1)) / count
    return found
