"""The biattentive classification network: its sizes, and texts without words."""

from __future__ import annotations

import torch

from pyelmo.tasks.sentiment.network import BcnNetwork

MASK = torch.arange(4) < torch.tensor([[4], [0], [3]])  # the second text has no words


def test_the_sizes_of_the_paper_are_the_defaults():
    network = BcnNetwork(300, 5)
    assert [layer.linear.weight.shape for layer in network.output] == [(4800, 2400), (2400, 1200), (20, 600)]


def test_a_text_without_words_gets_scores_and_leaves_gradients_finite():
    torch.manual_seed(0)
    network = BcnNetwork(5, 3, hidden=4)
    inputs = torch.randn(3, 4, 5, requires_grad=True)
    network(inputs, MASK).square().sum().backward()
    for parameter in network.parameters():
        assert parameter.grad.isfinite().all()
    scores = network.eval()(inputs, MASK)
    assert scores.isfinite().all()
    assert torch.equal(scores[1], network(torch.zeros_like(inputs), MASK)[1])
