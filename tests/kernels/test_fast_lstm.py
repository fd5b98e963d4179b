"""The fast LSTM computes what the plain reference computes, forward and backward."""

from __future__ import annotations

import functools

import pytest
import torch
from parity import DEVICE, INTERPRETED, TOLERANCE, check, gradients, relative_error
from torch import Tensor

from pyelmo.model.lstm import projected_lstm

pytest.importorskip("triton")
from pyelmo.kernels.gpu.lstm import fast_projected_lstm

pytestmark = pytest.mark.gpu

SMALL = {"directions": 2, "batch": 9, "time": 5, "inputs": 12, "cells": 40, "size": 16}
SHAPE = SMALL if INTERPRETED else SMALL | {"batch": 70, "time": 20, "inputs": 128, "cells": 1032, "size": 128}


def values(*, projection: bool = True, shape: dict[str, int] = SHAPE) -> dict[str, Tensor]:
    """Weights large enough that both clips at 3 (or smaller) clip some values and not others."""
    generator = torch.Generator().manual_seed(0)
    n, b, t, d, c, p = shape.values()
    p = p if projection else c
    shapes = {
        "inputs": ((n, b, t, d), 1.0), "hidden": ((n, b, p), 1.0), "cell": ((n, b, c), 2.0),
        "weight_input": ((n, 4 * c, d), 1.5 * d**-0.5), "weight_recurrent": ((n, 4 * c, p), 0.5 * p**-0.5),
        "bias": ((n, 4 * c), 0.5),
    }  # fmt: skip
    if projection:
        shapes["weight_projection"] = ((n, p, c), 3.0 * c**-0.5)
    return {name: torch.randn(shape, generator=generator).mul(by).to(DEVICE) for name, (shape, by) in shapes.items()}


def arranged(function, mask, clips, tensors):  # type: ignore[no-untyped-def]
    inputs, hidden, cell, weight_input, weight_recurrent, bias, *projection = tensors
    outputs = function(
        inputs, hidden, cell, mask, weight_input, weight_recurrent, bias, projection[0] if projection else None, *clips
    )
    # Where the mask is false the output is undefined.
    return outputs if mask is None else (outputs[0] * mask[..., None], *outputs[1:])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("clips", [(3.0, 3.0), (None, 3.0), (3.0, None), (None, None)])
def test_outputs_and_gradients_agree(dtype, clips):
    run = functools.partial(arranged, mask=None, clips=clips)
    check(
        lambda leaves: run(fast_projected_lstm, tensors=leaves),
        lambda leaves: run(projected_lstm, tensors=leaves),
        values(), dtype,
    )  # fmt: skip


def test_outputs_and_gradients_agree_where_most_values_are_clipped():
    # Few values and float32: a gradient jumps at a clip, so one value rounded to its other side already shows.
    run = functools.partial(arranged, mask=None, clips=(1.0, 0.5))
    check(
        lambda leaves: run(fast_projected_lstm, tensors=leaves),
        lambda leaves: run(projected_lstm, tensors=leaves),
        values(shape=SMALL), torch.float32,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_outputs_and_gradients_agree_where_rows_end_early(dtype):
    lengths = torch.arange(SHAPE["batch"], device=DEVICE) % (SHAPE["time"] + 1)
    mask = torch.arange(SHAPE["time"], device=DEVICE) < lengths[:, None]
    run = functools.partial(arranged, mask=mask, clips=(3.0, 3.0))
    check(
        lambda leaves: run(fast_projected_lstm, tensors=leaves),
        lambda leaves: run(projected_lstm, tensors=leaves),
        values(), dtype,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_outputs_and_gradients_agree_without_a_projection(dtype):
    run = functools.partial(arranged, mask=None, clips=(3.0, 3.0))
    check(
        lambda leaves: run(fast_projected_lstm, tensors=leaves),
        lambda leaves: run(projected_lstm, tensors=leaves),
        values(projection=False), dtype,
    )  # fmt: skip


def test_without_a_gradient_the_outputs_are_the_same():
    tensors = list(values().values())
    with torch.no_grad():
        alone = arranged(fast_projected_lstm, None, (3.0, 3.0), tensors)
    taped = arranged(fast_projected_lstm, None, (3.0, 3.0), [tensor.requires_grad_() for tensor in tensors])
    for one, other in zip(alone, taped, strict=True):
        assert relative_error(one, other) < TOLERANCE[torch.float32]


@torch.no_grad()
def test_rows_after_their_end_may_be_skipped():
    lengths = torch.arange(SHAPE["batch"], 0, -1).clamp(max=SHAPE["time"])  # longest first
    steps = torch.arange(SHAPE["time"])
    mask = (steps < lengths[:, None]).to(DEVICE)
    counts = (lengths[:, None] > steps).sum(0).tolist()
    counts[0] = 8 * SHAPE["batch"]  # more than there are is no harm
    tensors = list(values().values())
    all_rows = arranged(fast_projected_lstm, mask, (3.0, 3.0), tensors)
    fewer = arranged(functools.partial(fast_projected_lstm, counts=counts), mask, (3.0, 3.0), tensors)
    for one, other in zip(fewer, all_rows, strict=True):
        assert relative_error(one, other) < TOLERANCE[torch.float32]


def test_the_clips_are_exact_and_their_gradient_is_zero_only_outside_the_bounds():
    # Gates wide open: the cell counts 2, 3, 4 -> 3; identity projection halves it. At a bound itself gradient passes.
    inputs = torch.zeros(1, 1, 2, 4, device=DEVICE)
    cell = torch.tensor([[[1.0, 2.0, 2.5, -3.0]]], device=DEVICE, requires_grad=True)
    hidden = torch.zeros(1, 1, 4, device=DEVICE)
    weight = torch.zeros(1, 16, 4, device=DEVICE)
    bias = torch.cat([torch.full((12,), 100.0), torch.full((4,), 100.0)]).to(DEVICE)[None]
    bias[0, 11] = -100.0  # the last cell counts down
    projection = torch.eye(4, device=DEVICE)[None]
    _, _, last = fast_projected_lstm(inputs[:, :, :1], hidden, cell, None, weight, weight, bias, projection, 3.0, 3.0)
    assert last.tolist() == [[[2.0, 3.0, 3.0, -3.0]]]
    assert torch.autograd.grad(last.sum(), cell)[0].tolist() == [[[1.0, 1.0, 0.0, 0.0]]]


def test_gradients_agree_when_only_the_last_state_is_used():
    def last(function, leaves):
        return arranged(function, None, (3.0, 3.0), leaves)[1:]

    check(lambda leaves: last(fast_projected_lstm, leaves), lambda leaves: last(projected_lstm, leaves),
          values(), torch.float32)  # fmt: skip


def test_a_backward_run_twice_gives_the_same_gradients_twice():
    leaves = [tensor.requires_grad_() for tensor in values().values()]
    outputs = arranged(fast_projected_lstm, None, (3.0, 3.0), leaves)
    loss = outputs[0].square().sum()
    once = torch.autograd.grad(loss, leaves, retain_graph=True)
    again = torch.autograd.grad(loss, leaves)
    for one, other in zip(once, again, strict=True):
        assert torch.equal(one, other)


@pytest.mark.skipif(INTERPRETED, reason="autocast's type is bfloat16 on the GPU only")
def test_under_autocast_the_weights_gradients_come_back_in_their_own_type():
    leaves = [tensor.requires_grad_() for tensor in values().values()]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        outputs = arranged(fast_projected_lstm, None, (3.0, 3.0), leaves)
    want = arranged(projected_lstm, None, (3.0, 3.0), leaves)
    assert outputs[0].dtype == torch.bfloat16
    for one, other in zip(gradients(outputs, leaves), gradients(want, leaves), strict=True):
        assert one.dtype == torch.float32
        assert relative_error(one, other) < TOLERANCE[torch.bfloat16]


def test_no_steps_leave_the_state_as_it_was():
    inputs, hidden, cell, *rest = values().values()
    outputs, last, last_cell = fast_projected_lstm(inputs[:, :, :0], hidden, cell, None, *rest, 3.0, 3.0)
    assert outputs.shape == (*inputs.shape[:2], 0, hidden.shape[-1])
    assert last is hidden
    assert last_cell is cell
