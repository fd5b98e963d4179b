"""The network for questions: the equations of the papers, padding and batching, and exact search for answers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import TOLERANCE
from torch.autograd import gradcheck
from torch.nn.functional import pad

from pyelmo.tasks.qa.network import (
    BoundaryScores,
    QaNetwork,
    SelfAttention,
    TextBatch,
    answer_loss,
    best_spans,
    span_probabilities,
)

D, E, H = 5, 2, 3
LENGTHS = {"passage": torch.tensor([6, 1, 4]), "question": torch.tensor([2, 3, 1])}


def near(got, want):
    return torch.allclose(got, want, rtol=0, atol=TOLERANCE[torch.float64])


def sides(extra):
    """Three passages and their questions."""
    batches = []
    for lengths in LENGTHS.values():
        longest = int(lengths.max())
        mask = torch.arange(longest) < lengths[:, None]
        vectors, joined = torch.randn(3, longest, D).double(), torch.randn(3, longest, E).double()
        batches.append(TextBatch(vectors, mask, joined if extra else None))
    return batches


@pytest.fixture(params=[0, E], ids=["words", "and elmo"])
def made(request):
    torch.manual_seed(0)
    network = QaNetwork(D, hidden=H, extra=request.param).double().eval()
    return network, *sides(request.param)


def part(side, row, length):
    extra = None if side.extra is None else side.extra[row : row + 1, :length]
    return TextBatch(side.vectors[row : row + 1, :length], side.mask[row : row + 1, :length], extra)


def wider(side, filling):
    """Two words of padding more, and this in all of it."""
    mask = pad(side.mask, (0, 2))
    tensors = [None if each is None else pad(each, (0, 0, 0, 2)) for each in (side.vectors, side.extra)]
    for tensor in tensors:
        if tensor is not None:
            tensor[~mask] = filling
    return TextBatch(tensors[0], mask, tensors[1])


# --- the equations, one pair and one word at a time --------------------------------------------------------------------


def naive_direction(cell, inputs, suffix):
    """torch's GRU (its documentation's equations) over a list of vectors."""
    weights = (getattr(cell, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    weight_i, weight_h, bias_i, bias_h = weights
    state, states = torch.zeros(H).double(), []
    for vector in inputs:
        from_input, from_state = (weight_i @ vector + bias_i).split(H), (weight_h @ state + bias_h).split(H)
        reset, update = (torch.sigmoid(from_input[gate] + from_state[gate]) for gate in (0, 1))
        new = torch.tanh(from_input[2] + reset * from_state[2])
        state = (1 - update) * new + update * state
        states.append(state)
    return states


def naive_gru(layer, inputs):
    there = naive_direction(layer.gru, inputs, "")
    back = naive_direction(layer.gru, inputs[::-1], "_reverse")[::-1]
    return [torch.cat(pair) for pair in zip(there, back, strict=True)]


def naive_softmax(values):
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def naive_layer(linear, vectors):
    return torch.relu(linear.weight @ torch.cat(vectors) + linear.bias)


def naive_attention(layer, passage, question):
    w1, w2, w3 = layer.passage.weight[0], layer.question.weight[0], layer.product
    similarity = [[float(w1 @ h + w2 @ q + w3 @ (h * q)) for q in question] for h in passage]
    weights = naive_softmax([max(row) for row in similarity])
    summary = sum(weight * h for weight, h in zip(weights, passage, strict=True))
    outputs = []
    for h, row in zip(passage, similarity, strict=True):
        c = sum(weight * q for weight, q in zip(naive_softmax(row), question, strict=True))
        outputs.append(naive_layer(layer.output, [h, c, h * c, summary * c]))
    return outputs


def naive_self_attention(layer, words):
    outputs = []
    for i, h in enumerate(words):
        others = [other for j, other in enumerate(words) if j != i] or [h]
        weights = naive_softmax([float(layer.other.weight[0] @ o + layer.product @ (h * o)) for o in others])
        c = sum(weight * other for weight, other in zip(weights, others, strict=True))
        outputs.append(naive_layer(layer.output, [h, c, h * c]))
    return outputs


@torch.no_grad()
def naive(network, passage, question):
    encoded = []
    for side in (passage, question):
        states = naive_gru(network.encoder, list(side.vectors[0]))
        extra = [torch.empty(0).double()] * len(states) if side.extra is None else side.extra[0]
        encoded.append([torch.cat(pair) for pair in zip(states, extra, strict=True)])
    mixed = naive_attention(network.attention, *encoded)
    again = naive_self_attention(network.self_attention, naive_gru(network.rereader, mixed))
    mixed = [one + other for one, other in zip(mixed, again, strict=True)]
    firsts = naive_gru(network.first_gru, mixed)
    lasts = naive_gru(network.last_gru, [torch.cat(pair) for pair in zip(mixed, firsts, strict=True)])
    return BoundaryScores(
        torch.stack([network.first.weight[0] @ state for state in firsts]),
        torch.stack([network.last.weight[0] @ state for state in lasts]),
    )


@pytest.mark.parametrize("row", range(3))
def test_a_pair_s_scores_are_those_of_the_equations(made, row):
    network, passage, question = made
    alone = [part(side, row, int(LENGTHS[name][row])) for name, side in (("passage", passage), ("question", question))]
    for got, want in zip(network(*alone), naive(network, *alone), strict=True):
        assert near(got[0], want)


# --- padding, batching, gradients ---------------------------------------------------------------------------------------


def test_padding_never_changes_a_score_whatever_it_holds(made):
    network, passage, question = made
    want = network(passage, question)
    for filling in (0.0, 1e3, float("nan")):
        got = network(wider(passage, filling), wider(question, filling))
        for one, other in zip(got, want, strict=True):
            assert near(one[:, :-2][passage.mask], other[passage.mask])
            assert (one[:, -2:] == -torch.inf).all()


def test_a_pair_alone_gives_what_it_gives_in_a_batch(made):
    network, passage, question = made
    together = network(passage, question)
    for row in range(3):
        lengths = [int(LENGTHS[name][row]) for name in ("passage", "question")]
        alone = network(part(passage, row, lengths[0]), part(question, row, lengths[1]))
        for one, other in zip(alone, together, strict=True):
            assert near(one[0], other[row, : lengths[0]])


def test_gradients_agree_with_finite_differences(made):
    network, passage, question = made
    tensors = [side.vectors[[0, 2]].clone().requires_grad_() for side in (passage, question)]
    masks = [side.mask[[0, 2]] for side in (passage, question)]
    extras = [None if side.extra is None else side.extra[[0, 2]] for side in (passage, question)]

    def run(*vectors):
        scores = network(*(TextBatch(*each) for each in zip(vectors, masks, extras, strict=True)))
        return tuple(each[masks[0]] for each in scores)

    assert gradcheck(run, tuple(tensors), check_undefined_grad=False)


def test_every_parameter_and_every_word_gets_a_gradient(made):
    network, passage, question = made
    for side in (passage, question):
        side.vectors.requires_grad_()
    answer_loss(network(passage, question), [[(0, 1), (4, 5)], [(0, 0)], [(2, 3)]]).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    for side in (passage, question):
        known = torch.tensor([0, 2])  # a passage of one word has one answer, whatever is in it
        assert side.vectors.grad[known][side.mask[known]].any(1).all()
        assert not side.vectors.grad[~side.mask].any()


def test_training_drops_and_evaluation_does_not(made):
    network, passage, question = made
    assert torch.equal(network(passage, question).first, network(passage, question).first)
    network.train()
    torch.manual_seed(1)
    assert not torch.equal(network(passage, question).first, network(passage, question).first)


def test_it_learns_three_answers():
    torch.manual_seed(0)
    network = QaNetwork(D, hidden=8).double()
    passage, question = sides(0)
    spans = [[(2, 4)], [(0, 0)], [(1, 1)]]
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(100):
        optimiser.zero_grad()
        answer_loss(network(passage, question), spans).backward()
        optimiser.step()
    assert best_spans(network.eval()(passage, question), 17) == [span for (span,) in spans]


def test_the_paper_s_sizes_are_the_defaults():
    network = QaNetwork(400, extra=1024)
    assert network.encoder.gru.hidden_size == 90
    assert network.attention.output.weight.shape == (180, 4 * 1204)
    assert network.self_attention.output.weight.shape == (180, 540)
    assert network.last_gru.gru.input_size == 360
    assert network.dropout.rate == 0.2


# --- long passages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 12, 36, 50, 10**6])
def test_attention_in_parts_is_attention_in_one(at_once):
    torch.manual_seed(0)
    layer = SelfAttention(4, 6, 0.0).double()
    states = torch.randn(3, 6, 4).double().requires_grad_()
    mask = torch.arange(6) < LENGTHS["passage"][:, None]
    want = layer.attend(states, mask, 108)
    got = layer.attend(states, mask, at_once)
    assert near(got, want)
    (one,), (other,) = (torch.autograd.grad(each[mask].square().sum(), states) for each in (got, want))
    assert near(one, other)


def test_a_passage_of_5000_words_is_read():
    torch.manual_seed(0)
    network = QaNetwork(4, hidden=2).eval()
    with torch.no_grad():
        scores = network(
            TextBatch(torch.randn(1, 5000, 4), torch.ones(1, 5000, dtype=torch.bool)),
            TextBatch(torch.randn(1, 7, 4), torch.ones(1, 7, dtype=torch.bool)),
        )
    assert scores.first.isfinite().all()
    ((first, last),) = best_spans(scores, 17)
    assert 0 <= first <= last < first + 17


# --- answers ------------------------------------------------------------------------------------------------------------


def random_scores(seed, lengths, *, ties):
    generator = torch.Generator().manual_seed(seed)
    shape = (2, len(lengths), max(lengths))
    values = torch.randint(3, shape, generator=generator).double() if ties else torch.randn(shape, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return BoundaryScores(*values.masked_fill(~mask, -torch.inf))


@settings(deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 20), st.booleans())
def test_the_best_answer_is_that_of_trying_all(seed, lengths, longest, ties):
    scores = random_scores(seed, lengths, ties=ties)
    for row, best in enumerate(best_spans(scores, longest)):
        tried = [
            (-float(scores.first[row, first] + scores.last[row, last]), first, last)
            for first in range(lengths[row])
            for last in range(first, min(first + longest, lengths[row]))
        ]
        assert best == min(tried)[1:]


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.data())
def test_the_loss_is_that_of_adding_up_probabilities(seed, length, data):
    scores = random_scores(seed, [length, 8], ties=False)
    span = st.tuples(st.integers(0, length - 1), st.integers(0, length - 1))
    spans = [data.draw(st.lists(span, min_size=1, max_size=5)) for _ in range(2)]
    want = 0.0
    for row in range(2):
        for side, values in enumerate(scores):
            chances = values[row].softmax(0)
            want -= math.log(sum(float(chances[word]) for word in {span[side] for span in spans[row]})) / 2
    assert float(answer_loss(scores, spans)) == pytest.approx(want, abs=1e-5)


def test_the_loss_of_scores_far_apart_is_finite_and_so_is_its_gradient():
    first = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = answer_loss(BoundaryScores(first, torch.zeros(1, 3)), [[(1, 1), (2, 2)]])
    loss.backward()
    assert loss.item() == pytest.approx(1e4 + math.log(1.5))
    assert first.grad.tolist() == [[1, 0, -1]]


def test_batch_mates_change_no_loss():
    scores = random_scores(0, [4, 7], ties=False)
    spans = [[(0, 2)], [(3, 6), (1, 1)]]
    alone = [answer_loss(BoundaryScores(*(each[row : row + 1] for each in scores)), [spans[row]]) for row in range(2)]
    assert float(answer_loss(scores, spans)) == pytest.approx(float(sum(alone)) / 2)


def test_the_probabilities_of_all_answers_sum_to_one():
    torch.manual_seed(0)
    scores = BoundaryScores(*torch.randn(2, 1, 5))
    scores.last[0, 4] = scores.first[0, 4] = -torch.inf  # padding
    spans = [(first, last) for first in range(4) for last in range(first, min(first + 3, 4))]
    values = [span_probabilities(scores, [span], 3)[0] for span in spans]
    assert sum(values) == pytest.approx(1)
    assert spans[max(range(len(spans)), key=values.__getitem__)] == best_spans(scores, 3)[0]
    weights = [float((scores.first[0, first] + scores.last[0, last]).exp()) for first, last in spans]
    assert values == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-5)
