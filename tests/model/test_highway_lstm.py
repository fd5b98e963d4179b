"""The highway LSTM computes the paper's equations, forward and backward, whatever the padding."""

from __future__ import annotations

import math

import pytest
import torch
from support import TOLERANCE
from torch.autograd import gradcheck

from pyelmo.model.highway_lstm import GATES, HighwayLayer, highway_lstm

SIZES = [(1, 1, 1, 1), (5, 3, 4, 6), (7, 2, 3, 5), (2, 8, 6, 2)]  # T, B, D, H


def equations(inputs, mask, weight_input, recurrent, bias, keep):
    """The reference: one step after another, as the equations say."""
    size = recurrent.shape[1]
    hidden = cell = inputs.new_zeros(inputs.shape[1], size)
    outputs = []
    for step, live in zip(inputs, mask.unsqueeze(2), strict=True):
        gates, straight = (step @ weight_input.T).split([GATES * size, size], -1)
        leave, through, enter, forget, candidate = (gates + hidden @ recurrent.T + bias).chunk(GATES, -1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        through = torch.sigmoid(through)
        hidden = through * torch.sigmoid(leave) * torch.tanh(cell) + (1 - through) * straight
        if keep is not None:
            hidden = hidden * keep
        hidden, cell = hidden * live, cell * live
        outputs.append(hidden)
    return torch.stack(outputs)


def make(time, batch, inputs, hidden, dtype=torch.float64, dropped=True, seed=0):
    """Return all arguments; every other row is padded at its end, the others at their beginning."""
    torch.manual_seed(seed)
    layer = HighwayLayer(inputs, hidden)
    layer.bias.data.normal_()
    lengths = torch.randint(1, time + 1, (batch,))
    mask = torch.arange(time)[:, None] < lengths
    mask[:, ::2] = mask[:, ::2].flip(0)
    keep = torch.randint(0, 2, (batch, hidden)) * 2.0 if dropped else None
    values = [torch.randn(time, batch, inputs), layer.input, layer.recurrent, layer.bias]
    values = [value.detach().to(dtype).requires_grad_() for value in values]
    return values, mask, None if keep is None else keep.to(dtype)


def run(function, values, mask, keep):
    inputs, *weights = values
    return function(inputs, mask, *weights, keep)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_the_layer_equals_the_equations_forward_and_backward(size, dropped, dtype):
    values, mask, keep = make(*size, dtype, dropped)
    got, want = run(highway_lstm, values, mask, keep), run(equations, values, mask, keep)
    weights = torch.randn_like(want)
    assert torch.allclose(got, want, rtol=0, atol=TOLERANCE[dtype])
    gradients = [torch.autograd.grad((output * weights).sum(), values) for output in (got, want)]
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("function", [highway_lstm, equations])
def test_gradients_agree_with_finite_differences(function):
    values, mask, keep = make(3, 2, 2, 3)
    assert gradcheck(lambda *values: run(function, values, mask, keep), values)


@pytest.mark.parametrize("function", [highway_lstm, equations])
def test_one_step_is_what_the_equations_say(function):
    """H = D = 1, two steps: W = 1, ..., 6, U = 0.1, ..., 0.5, b = 0, x = (1, -1), z = 2."""
    weight = torch.arange(1.0, 7.0).double().unsqueeze(1)
    recurrent = weight[:5] / 10
    inputs = torch.tensor([[[1.0]], [[-1.0]]]).double()
    ones, zeros = torch.ones(2, 1, dtype=torch.bool), torch.zeros(5).double()
    got = function(inputs, ones, weight, recurrent, zeros, torch.full((1, 1), 2.0).double())
    hidden = cell = 0.0
    for step, x in enumerate((1.0, -1.0)):
        o, r, i, f = (1 / (1 + math.exp(-(k * x + k / 10 * hidden))) for k in (1, 2, 3, 4))
        cell = f * cell + i * math.tanh(5 * x + 0.5 * hidden)
        hidden = 2 * (r * o * math.tanh(cell) + (1 - r) * 6 * x)
        assert got[step].item() == pytest.approx(hidden, abs=1e-12)


@pytest.mark.parametrize("function", [highway_lstm, equations])
def test_padding_never_changes_a_result_at_either_end(function):
    values, _, keep = make(4, 3, 2, 5)
    inputs, *weights = values
    alone = function(inputs, torch.ones(4, 3, dtype=torch.bool), *weights, keep)
    for before, after in [(0, 3), (2, 0), (1, 2)]:
        padded = torch.nn.functional.pad(inputs, (0, 0, 0, 0, before, after), value=7.0)
        mask = torch.zeros(len(padded), 3, dtype=torch.bool)
        mask[before : before + 4] = True
        got = function(padded, mask, *weights, keep)
        assert torch.allclose(got[mask], alone.flatten(0, 1), rtol=0, atol=TOLERANCE[torch.float64])
        assert not got[~mask].any()


def test_one_mask_is_drawn_for_a_whole_sequence_and_none_in_evaluation():
    torch.manual_seed(0)
    layer = HighwayLayer(3, 40, dropout=0.5)
    inputs, mask = torch.randn(6, 2, 3), torch.ones(6, 2, dtype=torch.bool)
    dropped = layer(inputs, mask) == 0
    assert torch.equal(dropped.all(0), dropped.any(0))
    assert 0 < dropped[0].sum() < dropped[0].numel()
    assert not torch.equal(dropped[0, 0], dropped[0, 1])
    assert layer.eval()(inputs, mask).all()


def test_matrices_begin_orthonormal_and_the_forget_gate_open():
    layer = HighwayLayer(7, 4)
    for block in (*layer.input.chunk(6), *layer.recurrent.chunk(5)):
        assert torch.allclose(block @ block.T, torch.eye(4), atol=TOLERANCE[torch.float32])
    assert layer.bias.chunk(5)[3].tolist() == [1.0] * 4
    assert layer.bias.sum() == 4


def test_it_computes_in_the_weights_type_under_autocast():
    layer = HighwayLayer(3, 4)
    inputs, mask = torch.randn(5, 2, 3) / 10, torch.ones(5, 2, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = layer(inputs, mask)
    assert got.dtype == torch.float32
    assert torch.allclose(got, layer(inputs, mask), rtol=0, atol=TOLERANCE[torch.bfloat16])
    got.sum().backward()
    assert layer.input.grad is not None
