"""ESIM: equal to the paper's equations for one pair at a time, whatever the padding and the rest of the batch."""

from __future__ import annotations

import pytest
import torch
from support import TOLERANCE
from torch.autograd import gradcheck
from torch.nn.functional import pad

from pyelmo.tasks.nli.network import EsimNetwork

FIRST, SECOND = torch.tensor([4, 1, 3]), torch.tensor([2, 5, 1])  # words of each pair
FIRST_MASK, SECOND_MASK = torch.arange(4) < FIRST[:, None], torch.arange(5) < SECOND[:, None]


@pytest.fixture(params=[0, 2], ids=["plain", "elmo"])
def made(request):
    """A network in evaluation, and the arguments of three pairs in float64."""
    torch.manual_seed(0)
    network = EsimNetwork(5, 3, hidden=4, extra=request.param).double().eval()
    one, two = torch.randn(3, 4, 5).double(), torch.randn(3, 5, 5).double()
    extras = [torch.randn(3, words, 2).double() if request.param else None for words in (4, 5)]
    return network, [one, FIRST_MASK, two, SECOND_MASK, *extras]


def run_lstm(lstm, inputs):
    """Run both directions of an LSTM word by word."""
    sides = []
    for end in ("", "_reverse"):
        weights = [getattr(lstm, f"{name}_l0{end}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        hidden = cell = torch.zeros(lstm.hidden_size).double()
        outputs = []
        for vector in reversed(inputs) if end else inputs:
            gates = weights[0] @ vector + weights[2] + weights[1] @ hidden + weights[3]
            into, forget, new, out = gates.chunk(4)
            cell = forget.sigmoid() * cell + into.sigmoid() * new.tanh()
            hidden = out.sigmoid() * cell.tanh()
            outputs.append(hidden)
        sides.append(outputs[::-1] if end else outputs)
    return [torch.cat(both) for both in zip(*sides, strict=True)]


def naive(network, one, two):
    """Compute the paper's equations 1 to 20 with loops, for the words (vector, optionally a second one) of one pair."""
    encoded = []
    for words in (one, two):
        states = run_lstm(network.encoder.lstm, [vector for vector, _ in words])
        encoded.append(
            [
                state if more is None else torch.cat([state, more])
                for state, (_, more) in zip(states, words, strict=True)
            ]
        )
    pooled = []
    for own, other in (encoded, encoded[::-1]):
        local = []
        for state in own:
            powers = [torch.exp(state @ word) for word in other]
            aligned = sum(power * word for power, word in zip(powers, other, strict=True)) / sum(powers)
            joined = torch.cat([state, aligned, state - aligned, state * aligned])
            linear = network.projection[0]
            local.append((linear.weight @ joined + linear.bias).clamp(min=0))
        states = torch.stack(run_lstm(network.composition.lstm, local))
        pooled += [states.mean(0), states.max(0).values]
    first, second = network.output[1], network.output[4]
    hidden = (first.weight @ torch.cat(pooled) + first.bias).clamp(min=0)
    return second.weight @ hidden + second.bias


def words_of(vectors, extra, row, length):
    return [(vectors[row, step], None if extra is None else extra[row, step]) for step in range(length)]


def test_a_batch_gives_what_the_equations_give_for_each_pair(made):
    network, (one, one_mask, two, two_mask, one_extra, two_extra) = made
    got = network(one, one_mask, two, two_mask, one_extra, two_extra)
    for row in range(3):
        pair = words_of(one, one_extra, row, FIRST[row]), words_of(two, two_extra, row, SECOND[row])
        assert torch.allclose(got[row], naive(network, *pair), rtol=0, atol=TOLERANCE[torch.float64])


def test_padding_and_batch_mates_never_change_a_result(made):
    network, arguments = made
    want = network(*arguments)
    for filling in (0.0, 1e3, float("nan")):
        wide = []
        for tensor, mask in zip(arguments, [FIRST_MASK, None, SECOND_MASK, None, FIRST_MASK, SECOND_MASK], strict=True):
            if tensor is None:
                wide.append(None)
            elif mask is None:
                wide.append(pad(tensor, (0, 2)))
            else:
                longer = pad(tensor, (0, 0, 0, 2))
                longer[~pad(mask, (0, 2))] = filling
                wide.append(longer)
        assert torch.allclose(network(*wide), want, rtol=0, atol=TOLERANCE[torch.float64])
    alone = network(*(None if tensor is None else tensor[1:2] for tensor in arguments))
    assert torch.allclose(alone[0], want[1], rtol=0, atol=TOLERANCE[torch.float64])


def test_gradients_are_right_and_reach_every_weight(made):
    network, arguments = made
    one, two = (tensor.requires_grad_() for tensor in (arguments[0], arguments[2]))
    assert gradcheck(lambda a, b: network(a, arguments[1], b, *arguments[3:]), (one, two))
    network.train()(*arguments).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in network.parameters())
