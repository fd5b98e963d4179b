"""The running mean of weights: as its equation has it, and a guest in the model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyelmo.tasks.harness.weight_average import WeightAverage


def make():
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    return model


def test_the_mean_is_that_of_the_equation_and_of_trained_weights_alone():
    model = make()
    average = WeightAverage(model, 0.5)
    want = model.weight.detach().clone()
    for step in range(5):
        with torch.no_grad():
            model.weight += torch.randn(1, 2)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        want = decay * want + (1 - decay) * model.weight.detach()
    assert list(average.means) == ["weight"]
    assert torch.allclose(average.means["weight"], want)


def test_the_model_has_the_means_for_a_while_and_its_own_weights_after_even_if_that_fails():
    model = make()
    average = WeightAverage(model, 0.9)
    with torch.no_grad():
        model.weight += 1
    own, mean = model.weight.detach().clone(), average.means["weight"].clone()
    with average.applied():
        assert torch.equal(model.weight, mean)
    assert torch.equal(model.weight, own)
    with pytest.raises(KeyError), average.applied():
        raise KeyError
    assert torch.equal(model.weight, own)
    assert torch.equal(average.means["weight"], mean)


def test_without_a_decay_nothing_is_kept():
    model = make()
    average = WeightAverage(model, 0.0)
    average.update(3)
    with average.applied():
        assert torch.equal(model.weight, make().weight)
    assert average.means == {}
