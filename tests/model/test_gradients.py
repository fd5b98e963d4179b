"""Gradients agree with finite differences, in float64."""

from __future__ import annotations

import pytest
import torch
from support import TINY
from torch.autograd import gradcheck
from torch.func import functional_call

from pyelmo.config import CharConfig, LstmConfig
from pyelmo.model.bilm import BiLM
from pyelmo.model.char_cnn import CharCNN
from pyelmo.model.lstm import ProjectedLSTM
from pyelmo.model.scalar_mix import ScalarMix


def check_module(module: torch.nn.Module, *inputs: torch.Tensor) -> None:
    """Every parameter and every floating input."""
    module.double()
    names = [name for name, _ in module.named_parameters()]
    parameters = [p.detach().clone().requires_grad_() for p in module.parameters()]

    def run(*values):
        return functional_call(module, dict(zip(names, values, strict=False)), (*values[len(names) :],))

    assert gradcheck(run, (*parameters, *inputs), check_undefined_grad=False)


@pytest.mark.parametrize("projection", [3, None])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_lstm(projection, clip):
    torch.manual_seed(1)
    config = LstmConfig(cells=4, projection=projection, cell_clip=clip, projection_clip=clip)
    layer = ProjectedLSTM(2, config, directions=2)
    torch.nn.init.normal_(layer.input)
    inputs = torch.randn(2, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(2, 2, config.dim, dtype=torch.float64, requires_grad=True)
    cell = torch.randn(2, 2, 4, dtype=torch.float64, requires_grad=True)
    check_module(layer, inputs, hidden, cell)
    check_module(layer, inputs, hidden, cell, torch.tensor([[True, True, True], [True, False, False]]))


def test_clipping_happens_in_the_clipped_case():
    torch.manual_seed(1)
    layer = ProjectedLSTM(2, LstmConfig(cells=4, projection=3, cell_clip=0.3, projection_clip=0.3), directions=2)
    torch.nn.init.normal_(layer.input)
    outputs, _, cell = layer(torch.randn(2, 2, 3, 2), torch.zeros(2, 2, 3), torch.zeros(2, 2, 4))
    assert (cell.abs() == 0.3).any()
    assert outputs.abs().max() <= 0.3


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_char_cnn(activation):
    torch.manual_seed(2)
    config = CharConfig(symbols=9, max_length=5, dim=2, filters=((1, 2), (3, 3)), highways=2, activation=activation)
    module = CharCNN(config)
    # The table has no row that stays at zero here: finite differences would move it, its gradient is none by design.
    module.embedding.padding_idx = None
    check_module(module, torch.randint(1, 9, (3, 5)))


@pytest.mark.parametrize("per_direction", [False, True])
@pytest.mark.parametrize("layer_norm", [None, "token", "batch"])
def test_scalar_mix(per_direction, layer_norm):
    torch.manual_seed(3)
    mix = ScalarMix(3, per_direction=per_direction, layer_norm=layer_norm)
    torch.nn.init.normal_(mix.logits)
    values = torch.randn(3, 2, 2, 4, dtype=torch.float64, requires_grad=True)
    check_module(mix, values, torch.tensor([[True, True], [True, False]]))


def test_the_whole_bilm():
    torch.manual_seed(4)
    bilm = BiLM(TINY).double()
    chars = torch.randint(1, 262, (4, 16))
    index, mask = torch.tensor([[0, 1, 2], [3, 1, 0]]), torch.tensor([[True, True, True], [True, True, False]])
    tokens = bilm.encode_words(chars, None).detach()[index].requires_grad_()
    assert gradcheck(lambda vectors: bilm.contextualise(vectors, mask).values, (tokens,))
