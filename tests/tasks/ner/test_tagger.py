"""The tagger network: its sizes, and texts without words."""

from __future__ import annotations

import torch

from pyelmo.tasks.ner.network import TaggerNetwork

MASK = torch.arange(4) < torch.tensor([[4], [0], [3]])  # the second text has no words


def test_the_sizes_of_the_paper_are_the_defaults():
    network = TaggerNetwork(178, 9)
    assert (network.first.lstm.hidden_size, network.second.lstm.hidden_size) == (200, 100)
    assert network.emissions.in_features == 200


def test_a_text_without_words_gets_finite_emissions():
    torch.manual_seed(0)
    network = TaggerNetwork(5, 3, hidden=(4, 4)).eval()
    assert network(torch.randn(3, 4, 5), MASK).isfinite().all()
