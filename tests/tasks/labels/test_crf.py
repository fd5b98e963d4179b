"""The conditional random field equals an enumeration of all sequences, and never decodes an invalid one."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import TOLERANCE
from torch.autograd import gradcheck

from pyelmo.errors import InputError
from pyelmo.tasks.labels.crf import CRF, allowed_transitions
from pyelmo.tasks.labels.spans import SCHEMES, to_labels, to_spans

SIZES = [(1, 1, 1), (1, 1, 4), (2, 3, 2), (3, 4, 3), (4, 5, 2), (2, 2, 5)]


def make(batch, time, labels, seed=0):
    torch.manual_seed(seed)
    crf = CRF(labels).double()
    lengths = torch.randint(1, time + 1, (batch,))
    lengths[0] = time
    mask = torch.arange(time) < lengths[:, None]
    return crf, torch.randn(batch, time, labels, dtype=torch.float64), torch.randint(labels, (batch, time)), mask


def every_score(crf, emissions):
    """Each sequence of one sentence without padding (T, K) with its score."""
    scores = {}
    for path in itertools.product(range(emissions.shape[1]), repeat=len(emissions)):
        score = (
            crf.start[path[0]] + crf.end[path[-1]] + sum(row[label] for row, label in zip(emissions, path, strict=True))
        )
        scores[path] = score + sum(crf.transitions[pair] for pair in itertools.pairwise(path))
    return scores


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_log_likelihood_gradient_and_decoder_equal_an_enumeration_of_all_sequences(size, seed):
    crf, emissions, labels, mask = make(*size, seed)
    emissions.requires_grad_()
    leaves = [emissions, *crf.parameters()]
    got = crf(emissions, labels, mask)
    want, best = [], []
    for row, chosen, live in zip(emissions, labels, mask, strict=True):
        scores = every_score(crf, row[live])
        want.append(scores[tuple(chosen[live].tolist())] - torch.stack(list(scores.values())).logsumexp(0))
        best.append(list(max(scores, key=lambda path: scores[path].item())))
    tolerance = TOLERANCE[torch.float64]
    assert torch.allclose(got, torch.stack(want), atol=tolerance)
    for one, other in zip(
        torch.autograd.grad(got.sum(), leaves),
        torch.autograd.grad(sum(want), leaves, materialize_grads=True),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=tolerance)
    assert crf.decode(emissions, mask) == best


def test_gradients_agree_with_finite_differences():
    crf, emissions, labels, mask = make(3, 4, 3)
    assert gradcheck(lambda values: crf(values, labels, mask), (emissions.requires_grad_(),))


def test_padding_never_changes_a_result_whatever_it_holds():
    crf, emissions, labels, mask = make(4, 6, 3, seed=1)
    wide = torch.full((4, 9, 3), 1e6, dtype=torch.float64)
    wide[:, :6][mask] = emissions[mask]
    targets = torch.full((4, 9), -100)
    targets[:, :6][mask] = labels[mask]
    live = torch.nn.functional.pad(mask, (0, 3))
    assert torch.equal(crf(wide, targets, live), crf(emissions, labels, mask))
    assert crf.decode(wide, live) == crf.decode(emissions, mask)


NAMES = ["LOC", "PER", "creative-work"]
LABELS = {scheme: ["O", *(f"{letter}-{name}" for name in NAMES for letter in SCHEMES[scheme])] for scheme in SCHEMES}


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(deadline=None)
@given(data=st.data())
def test_a_constrained_decoder_never_gives_an_invalid_sequence(scheme, data):
    """A sequence is valid if converting it to spans and back gives the same labels."""
    others = data.draw(st.permutations(LABELS[scheme][1:]))
    labels = ["O", *others[: data.draw(st.integers(0, len(others)))]]
    labels = data.draw(st.permutations(labels))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    crf = CRF(len(labels), allowed_transitions(labels, scheme))
    time = data.draw(st.integers(1, 7))
    mask = torch.arange(time) < torch.randint(1, time + 1, (5, 1))
    emissions = torch.randn(5, time, len(labels)) * data.draw(st.sampled_from([0.1, 1.0, 1e6]))
    for path, live in zip(crf.decode(emissions, mask), mask, strict=True):
        found = [labels[label] for label in path]
        assert len(found) == live.sum()
        assert to_labels(to_spans(found, scheme), len(found), scheme) == found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_constrained_decoder_gives_the_best_of_the_valid_sequences(scheme):
    labels = LABELS[scheme][:5]
    torch.manual_seed(3)
    crf = CRF(len(labels), allowed_transitions(labels, scheme)).double()
    emissions = torch.randn(20, 4, len(labels), dtype=torch.float64)
    for row, path in zip(emissions, crf.decode(emissions, torch.ones(20, 4, dtype=torch.bool)), strict=True):
        scores = every_score(crf, row)
        names = {one: [labels[label] for label in one] for one in scores}
        valid = [one for one in scores if to_labels(to_spans(names[one], scheme), 4, scheme) == names[one]]
        assert tuple(path) == max(valid, key=lambda one: scores[one].item())


def test_the_scheme_decides_transitions_with_the_start_and_the_end_last():
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    bio = allowed_transitions(labels, "bio")
    assert bio.shape == (7, 7)
    assert bio[5].tolist() == [True, True, False, True, False, False, False]  # from the start
    assert bio[1].tolist() == [True, True, True, True, False, False, True]  # from B-X
    assert not bio[6].any()  # nothing after the end
    assert not bio[:, 5].any()  # nothing before the start
    iob1 = allowed_transitions(labels, "iob1")
    assert iob1[5].tolist() == [True, False, True, False, True, False, False]
    assert iob1[2].tolist() == [True, True, True, False, True, False, True]  # from I-X
    bioul = allowed_transitions(["O", "B-X", "I-X", "L-X", "U-X", "L-Y"], "bioul")
    assert bioul[6].tolist() == [True, True, False, False, True, False, False, False]
    assert bioul[1].tolist() == [False, False, True, True, False, False, False, False]  # from B-X
    assert bioul[3].tolist() == [True, True, False, False, True, False, False, True]  # from L-X


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["I-X"], "bio", "labels I-X: no label of bio can stand alone. Add the label O."),
        (["B-X", "L-X"], "bioul", "Add the label O."),
        (["O", "S-X"], "bioul", "'S-X' is not valid in bioul"),
        (["O"], "bilou", "unknown scheme 'bilou'"),
    ],
)
def test_labels_that_cannot_label_a_sentence_are_refused(labels, scheme, message):
    with pytest.raises(InputError, match=message):
        allowed_transitions(labels, scheme)
