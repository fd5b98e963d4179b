"""The probability of a span equals the share of all valid label sequences that have the span."""

from __future__ import annotations

import itertools

import pytest
import torch

from pyelmo.tasks.labels.crf import CRF, allowed_transitions
from pyelmo.tasks.labels.marginals import Marginals
from pyelmo.tasks.labels.spans import SCHEMES, Span, to_spans

LABELS = {scheme: ["O", *(f"{letter}-{kind}" for kind in "XY" for letter in SCHEMES[scheme])] for scheme in SCHEMES}


def valid_paths(crf: CRF, length: int) -> list[tuple[int, ...]]:
    count = len(crf.start)
    return [
        path
        for path in itertools.product(range(count), repeat=length)
        if all(crf.allowed[pair] for pair in itertools.pairwise((count, *path, count + 1)))
    ]


def enumerate_spans(crf: CRF, emissions: torch.Tensor, labels: list[str], scheme: str) -> dict[Span, float]:
    """The probability of every span of one sentence (T, K), by a sum over all valid sequences."""
    totals: dict[Span, float] = {}
    partition = 0.0
    for path in valid_paths(crf, len(emissions)):
        score = crf.start[path[0]] + crf.end[path[-1]] + sum(crf.transitions[pair] for pair in itertools.pairwise(path))
        weight = float((score + sum(row[number] for row, number in zip(emissions, path, strict=True))).exp())
        partition += weight
        for span in to_spans([labels[number] for number in path], scheme):
            totals[span] = totals.get(span, 0.0) + weight
    return {span: total / partition for span, total in totals.items()}


@pytest.mark.parametrize("scheme", ["bio", "bioul"])
def test_spans_are_as_probable_as_an_enumeration_says(scheme):
    torch.manual_seed(3)
    labels = LABELS[scheme]
    crf = CRF(len(labels), allowed_transitions(labels, scheme)).double()
    emissions = torch.randn(4, 4, len(labels), dtype=torch.float64)
    lengths = (4, 1, 3, 2)
    mask = torch.arange(4) < torch.tensor(lengths)[:, None]
    marginals = Marginals(emissions, mask, crf.transitions, crf.start, crf.end, crf.allowed)
    compared = 0
    for row, length in enumerate(lengths):
        wanted = enumerate_spans(crf, emissions[row, :length], labels, scheme)
        for path in valid_paths(crf, length):
            for span, probability in marginals.spans(row, path, labels, scheme):
                assert probability == pytest.approx(wanted[span], abs=1e-12)
                compared += 1
    assert compared > 50


def test_the_labels_of_a_word_sum_to_one():
    torch.manual_seed(0)
    crf = CRF(3).double()
    emissions, mask = torch.randn(2, 5, 3, dtype=torch.float64), torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    marginals = Marginals(emissions, mask, crf.transitions, crf.start, crf.end, None)
    for row, length in enumerate((5, 3)):
        for position in range(length):
            assert sum(marginals.probability(row, position, [label]) for label in range(3)) == pytest.approx(1)
