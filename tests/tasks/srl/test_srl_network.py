"""The network for roles: directions, the predicate's flag, and decoding of valid spans."""

from __future__ import annotations

import torch

from pyelmo.tasks.srl.network import SrlNetwork

LABELS = ["O", "B-V", "I-V", "B-A0", "I-A0"]


def test_the_position_of_the_predicate_changes_the_roles_and_roles_are_valid_spans():
    torch.manual_seed(0)
    network = SrlNetwork(5, LABELS, hidden=6, layers=4).eval()
    inputs = torch.randn(1, 4, 5).expand(2, 4, 5)
    mask = torch.ones(2, 4, dtype=torch.bool)
    scores = network(inputs, torch.tensor([0, 3]), mask)
    assert not torch.allclose(scores[0], scores[1])
    scores = torch.randn(50, 4, len(LABELS)) * 100
    for path in network.decode(scores, torch.ones(50, 4, dtype=torch.bool)):
        for before, after in zip(["O", *(LABELS[one] for one in path)], [LABELS[one] for one in path], strict=False):
            assert after[0] != "I" or before[2:] == after[2:]


def test_without_a_scored_transition_the_best_valid_labels_are_the_best_labels():
    network = SrlNetwork(5, LABELS, hidden=4, layers=1)
    scores = torch.tensor([[[0.0, 5, 0, 0, 0], [0, 0, 5, 0, 0], [4, 0, 0, 0, 5]]])
    assert network.decode(scores, torch.ones(1, 3, dtype=torch.bool)) == [[1, 2, 0]]  # I-A0 cannot follow I-V


def test_directions_take_turns():
    """One layer sees only the words before, two see all."""
    torch.manual_seed(0)
    inputs, mask, predicates = (
        torch.randn(1, 4, 5, requires_grad=True),
        torch.ones(1, 4, dtype=torch.bool),
        torch.zeros(1).long(),
    )
    for layers, seen in ((1, [True, True, False, False]), (2, [True, True, True, True])):
        network = SrlNetwork(5, LABELS, hidden=6, layers=layers).eval()
        (gradient,) = torch.autograd.grad(network(inputs, predicates, mask)[0, 1].sum(), inputs)
        assert gradient[0].any(1).tolist() == seen


def test_the_sizes_of_the_paper_are_the_defaults():
    network = SrlNetwork(100, LABELS)
    assert [layer.recurrent.shape for layer in network.layers] == [(1500, 300)] * 8
    assert [layer.input.shape[1] for layer in network.layers] == [200] + [300] * 7
