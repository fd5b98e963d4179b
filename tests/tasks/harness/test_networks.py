"""Networks of one text: padding and batching change no result, gradients reach everything, small data is learnt."""

from __future__ import annotations

import pytest
import torch
from support import TOLERANCE
from torch.autograd import gradcheck
from torch.nn.functional import pad

from pyelmo.tasks.ner.network import TaggerNetwork
from pyelmo.tasks.sentiment.network import BcnNetwork
from pyelmo.tasks.srl.network import SrlNetwork

LABELS = ["O", "B-V", "I-V", "B-A0", "I-A0"]
LENGTHS = torch.tensor([4, 1, 3])
MASK = torch.arange(4) < LENGTHS[:, None]


def make_srl(**settings):
    network = SrlNetwork(5, LABELS, **{"hidden": 6, "layers": 4, "flag": 3} | settings)
    predicates = torch.tensor([1, 0, 2])
    return network, lambda inputs, mask, extra: network(inputs, predicates[: len(inputs)], mask)


def make_tagger(extra=0):
    network = TaggerNetwork(5, 7, hidden=(6, 4), extra=extra)
    return network, lambda inputs, mask, joined: network(inputs, mask, joined if extra else None)


def make_bcn(extra=0):
    network = BcnNetwork(5, 3, hidden=4, extra=extra)
    return network, lambda inputs, mask, joined: network(inputs, mask, joined if extra else None)


MAKERS = {
    "srl": make_srl,
    "srl, odd layers": lambda: make_srl(layers=3),
    "tagger": make_tagger,
    "tagger and elmo": lambda: make_tagger(2),
    "bcn": make_bcn,
    "bcn and elmo": lambda: make_bcn(2),
}


@pytest.fixture(params=MAKERS)
def made(request):
    """A network in evaluation, and three sentences in float64."""
    torch.manual_seed(0)
    network, run = MAKERS[request.param]()
    inputs, extra = torch.randn(3, 4, 5).double(), torch.randn(3, 4, 2).double()
    return network.double().eval(), run, inputs, extra


def real(outputs, mask):
    """What an output says of words; a class's scores (B, K) are of the whole text."""
    return outputs[mask] if outputs.dim() == 3 else outputs


def test_padding_never_changes_a_result_whatever_it_holds(made):
    _, run, inputs, extra = made
    want = real(run(inputs, MASK, extra), MASK)
    for filling in (0.0, 1e3, float("nan")):
        wide, joined = (pad(tensor, (0, 0, 0, 2)) for tensor in (inputs, extra))
        mask = pad(MASK, (0, 2))
        wide[~mask], joined[~mask] = filling, filling
        got = real(run(wide, mask, joined), mask)
        assert torch.allclose(got, want, rtol=0, atol=TOLERANCE[torch.float64])


def test_a_sentence_alone_gives_what_it_gives_in_a_batch(made):
    _, run, inputs, extra = made
    together = run(inputs, MASK, extra)
    length = LENGTHS[0]
    alone = run(inputs[:1, :length], MASK[:1, :length], extra[:1, :length])
    want = together[:1, :length] if together.dim() == 3 else together[:1]
    assert torch.allclose(alone, want, rtol=0, atol=TOLERANCE[torch.float64])


def test_gradients_agree_with_finite_differences(made):
    _, run, inputs, extra = made
    inputs, extra = inputs[:2, :3].clone().requires_grad_(), extra[:2, :3].clone().requires_grad_()
    mask = MASK[:2, :3]
    assert gradcheck(
        lambda *values: real(run(values[0], mask, values[1]), mask), (inputs, extra), check_undefined_grad=False
    )


def test_every_parameter_and_every_word_gets_a_gradient(made):
    network, run, inputs, extra = made
    inputs.requires_grad_()
    extra.requires_grad_()
    real(run(inputs, MASK, extra), MASK).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    assert inputs.grad[MASK].any(1).all()
    assert not inputs.grad[~MASK].any()


def test_training_drops_and_evaluation_does_not(made):
    network, run, inputs, extra = made
    assert torch.equal(run(inputs, MASK, extra), run(inputs, MASK, extra))
    network.train()
    torch.manual_seed(1)
    assert not torch.equal(run(inputs, MASK, extra), run(inputs, MASK, extra))


def test_each_network_learns_three_sentences():
    torch.manual_seed(0)
    inputs, extra = torch.randn(3, 4, 5), torch.randn(3, 4, 2)
    targets = torch.randint(3, (3, 4))
    for make in MAKERS.values():
        network, run = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
        for _ in range(150):
            scores = run(inputs, MASK, extra)
            wanted = targets[MASK] if scores.dim() == 3 else targets[:, 0]
            loss = torch.nn.functional.cross_entropy(real(scores, MASK), wanted)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        network.eval()
        assert torch.equal(real(run(inputs, MASK, extra), MASK).argmax(-1), wanted)
