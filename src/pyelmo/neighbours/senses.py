"""How many of a word's nearest occurrences share its sense (Peters et al. 2018, table 4, for "play" in SemCor).

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

# The senses of "play" in WordNet 3.0 that belong to sport and to theatre. The nouns: an action in a game; a drama,
# written or performed. The verbs: to take part in a game; to have a role on the stage.
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
    """The share of the nearest occurrences with the sense of the query, in percent.

    Equally near occurrences, as in a layer without context, each count as a fraction.
    """

    layers: tuple[float, ...]
    mean: float  # for the mean of the layers
    by_sense: dict[str, tuple[float, ...]]  # for each layer, then for the mean of the layers
    chance: dict[str, float]  # for neighbours chosen at random
    queries: dict[str, int]  # the number of occurrences of each sense
    candidates: int  # annotated occurrences of the word, in any sense
    neighbours: int  # the number of nearest occurrences that count


def senses_of_neighbours(
    embed: Encoder, sentences: Sequence[WsdSentence], senses: Mapping[str, Collection[str]], *, count: int = 10
) -> NeighbourSenses:
    """Query every occurrence of some senses of a word.

    Args:
        embed: The encoder.
        sentences: Sentences with annotated senses.
        senses: WordNet sense keys of one word, by a name for the sense.
        count: The number of neighbours. They come from all annotated occurrences in other sentences of the same word
            with one of the parts of speech of the keys.

    Returns:
        The shares of neighbours with the same sense.
    """
    lemmas = {lemma_of(key) for keys in senses.values() for key in keys}
    chosen = [sentence for sentence in sentences if any(instance.lemma in lemmas for instance in sentence.instances)]
    vectors, numbers, memberships = [], [], []
    arrays = encode(embed, [sentence.words for sentence in chosen])
    for number, (sentence, layers) in enumerate(zip(chosen, arrays, strict=True)):
        for instance in sentence.instances:
            if instance.lemma in lemmas:
                vectors.append(layers[:, instance.start : instance.end].mean(1, dtype=np.float32))  # (L, D)
                numbers.append(number)
                memberships.append([not set(keys).isdisjoint(instance.senses) for keys in senses.values()])
    has_sense = np.array(memberships, dtype=bool).reshape(-1, len(senses))  # (N, S)
    for name, occurrences in zip(senses, has_sense.sum(0).tolist(), strict=True):
        if occurrences < 2:
            raise InputError(f"the sense {name!r} has {occurrences} occurrences in the text; at least 2 are needed")
    sentence_of = np.array(numbers)
    others = sentence_of[:, None] != sentence_of  # (N, N)
    if others.sum(1).min() < count:
        raise InputError(f"{len(has_sense)} occurrences of the word are too few for {count} neighbours")
    same = (has_sense.astype(int) @ has_sense.T > 0) & others
    stacked = np.stack(vectors, axis=1)  # (L, N, D)
    kinds = np.concatenate([stacked, stacked.mean(0, keepdims=True)])
    shares = 100 * np.stack([_shares(kind, same, others, count) for kind in kinds])  # (L + 1, N)
    chance = 100 * same.sum(1) / others.sum(1)
    is_query = has_sense.any(1)
    by_name = dict(zip(senses, has_sense.T, strict=True))
    return NeighbourSenses(
        layers=tuple(shares[:-1, is_query].mean(1).tolist()),
        mean=float(shares[-1, is_query].mean()),
        by_sense={name: tuple(shares[:, rows].mean(1).tolist()) for name, rows in by_name.items()},
        chance={name: float(chance[rows].mean()) for name, rows in by_name.items()},
        queries={name: int(rows.sum()) for name, rows in by_name.items()},
        candidates=len(has_sense),
        neighbours=count,
    )


def _shares(
    vectors: Float32Array, same: npt.NDArray[np.bool_], others: npt.NDArray[np.bool_], count: int
) -> npt.NDArray[np.float64]:  # (N, D), (N, N), (N, N) -> (N,)
    scaled = unit_vectors(vectors)
    cosines = np.where(others, scaled @ scaled.T, -np.inf)
    last = -np.partition(-cosines, count - 1)[:, count - 1 : count]  # the cosine of the last neighbour
    nearer = cosines > last + ROUNDING
    tied = ~nearer & (cosines >= last - ROUNDING)
    left = count - nearer.sum(1)
    shares: npt.NDArray[np.float64] = ((nearer & same).sum(1) + left * (tied & same).sum(1) / tied.sum(1)) / count
    return shares
