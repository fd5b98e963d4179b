"""The senses of neighbours: shares that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pyelmo.errors import InputError
from pyelmo.neighbours.senses import PLAY, senses_of_neighbours
from pyelmo.probes.wsd_data import Instance, WsdSentence, lemma_of

SPORT, THEATRE, OTHER = "play%2:33:00::", "play%1:10:01::", "play%2:41:12::"
# Two sports and three theatres of which one lies among the sports; the last is of neither.
ANGLES = [(SPORT, 0.0), (SPORT, 0.1), (THEATRE, 0.25), (THEATRE, 3.0), (THEATRE, 3.1), (OTHER, 1.5)]


def sentences() -> list[WsdSentence]:
    return [
        WsdSentence([str(angle), "play"], [Instance(str(number), lemma_of(key), 1, 2, (key,))])
        for number, (key, angle) in enumerate(ANGLES)
    ]


def encoder(batch):
    """Layer 0 knows only the word; layer 1 has the angle of the sentence."""
    for words in batch:
        angle = float(words[0])
        yield np.array([[[0, 0], [1, 0]], [[0, 0], [np.cos(angle), np.sin(angle)]]], dtype=np.float32)


def test_the_share_of_the_nearest_with_the_same_sense():
    found = senses_of_neighbours(encoder, sentences(), PLAY, count=1)
    assert found.by_sense["sport"][1] == 100  # 0 and 0.1: each other
    assert found.by_sense["theatre"][1] == pytest.approx(200 / 3)  # 0.25 is nearest to 0.1
    assert found.layers[1] == pytest.approx(80)
    assert (found.queries, found.candidates) == ({"sport": 2, "theatre": 3}, 6)


def test_of_equally_near_ones_each_counts_in_part():
    found = senses_of_neighbours(encoder, sentences(), PLAY, count=2)
    assert found.by_sense["sport"][0] == pytest.approx(100 / 5)
    assert found.by_sense["theatre"][0] == pytest.approx(200 / 5)
    assert found.chance == pytest.approx({"sport": 20, "theatre": 40})


def test_occurrences_of_one_sentence_are_no_neighbours():
    both = WsdSentence(["0.0", "play", "play"], [Instance("a", lemma_of(SPORT), 1, 2, (SPORT,))] * 2)
    others = sentences()[2:]

    def embed(batch):
        for words, vectors in zip(batch, encoder(batch), strict=True):
            yield vectors[:, [0] + [1] * (len(words) - 1)]

    assert senses_of_neighbours(embed, [both, *others], PLAY, count=1).by_sense["sport"][1] == 0


@pytest.mark.parametrize(("count", "kept", "message"), [(6, 6, "too few"), (1, 2, "'theatre' has 0 occurrences")])
def test_too_little_text_is_an_error(count, kept, message):
    with pytest.raises(InputError, match=message):
        senses_of_neighbours(encoder, sentences()[:kept], PLAY, count=count)
