"""The moving average of weights: it follows its equation, and the model gets its own weights back."""

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


def test_the_average_follows_the_equation_for_trained_weights_only():
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


def test_the_model_gets_its_own_weights_back_even_after_an_error():
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


def test_without_a_decay_there_are_no_averages():
    model = make()
    average = WeightAverage(model, 0.0)
    average.update(3)
    with average.applied():
        assert torch.equal(model.weight, make().weight)
    assert average.means == {}
