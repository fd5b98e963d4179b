"""The recurrence of the highway LSTM in one launch computes what the plain loop computes, forward and backward."""

from __future__ import annotations

import pytest
import torch
from parity import DEVICE, INTERPRETED, TOLERANCE, check, gradients
from torch import Tensor

from pyelmo.kernels import choice
from pyelmo.model.highway_lstm import HighwayLayer, highway_recurrence

pytest.importorskip("triton")
from pyelmo.kernels.gpu.highway_lstm import TILES, fast_highway_recurrence

pytestmark = pytest.mark.gpu

# Rows and columns that fill no tile; the last is the paper's size.
SHAPES = [(1, 1, 3), (4, 5, 20), (3, 17, 70)] if INTERPRETED else [(1, 1, 3), (4, 17, 70), (40, 80, 300)]


def values(time: int, batch: int, size: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {
        "gates": ((time, batch, 5 * size), 1.0), "carry": ((time, batch, size), 1.0),
        "recurrent": ((5 * size, size), size**-0.5),
    }  # fmt: skip
    return {name: torch.randn(shape, generator=generator).mul(by).to(DEVICE) for name, (shape, by) in shapes.items()}


def keep(batch: int, size: int) -> Tensor:
    return ((torch.rand(batch, size, generator=torch.Generator().manual_seed(2)) < 0.9) / 0.9).to(DEVICE)


@pytest.fixture(params=[16, 32, 64])
def rows(request, monkeypatch) -> int:
    """Rows of the batch in one program."""
    for tiles in TILES.values():
        monkeypatch.setitem(tiles, "ROWS", request.param)
    return request.param


# Triton's interpreter multiplies bfloat16 matrices as if they were integers.
@pytest.mark.parametrize("dtype", [torch.float32] if INTERPRETED else TOLERANCE)
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("rows")
def test_outputs_and_gradients_agree(shape, dropped, dtype):
    drop = keep(*shape[1:]) if dropped else None
    check(
        lambda leaves: [fast_highway_recurrence(*leaves, drop)],
        lambda leaves: [highway_recurrence(*leaves, drop)],
        values(*shape), dtype,
    )  # fmt: skip


@pytest.mark.usefixtures("rows")
def test_masked_positions_leave_no_trace():
    # Minus infinity closes their input and forget gates; their carry is 0.
    time, batch, size = 4, 3, 20
    tensors = values(time, batch, size)
    tensors["gates"][2:, 1, 2 * size : 4 * size] = -torch.inf
    tensors["carry"][2:, 1] = 0.0
    leaves = [tensor.requires_grad_() for tensor in tensors.values()]
    outputs = fast_highway_recurrence(*leaves, None)
    assert not outputs[2:, 1].any()
    assert all(torch.isfinite(gradient).all() for gradient in gradients([outputs], leaves))


@pytest.mark.usefixtures("rows")
def test_the_same_rows_give_the_same_bits_in_any_batch():
    shape = SHAPES[-1]
    leaves = [tensor.requires_grad_() for tensor in values(*shape).values()]
    first = fast_highway_recurrence(*leaves, None)
    before = gradients([first], leaves)
    for _ in range(2 if INTERPRETED else 10):
        again = fast_highway_recurrence(*leaves, None)
        assert torch.equal(again, first)
        assert all(torch.equal(one, other) for one, other in zip(gradients([again], leaves), before, strict=True))
    gates, carry, recurrent = leaves
    alone = fast_highway_recurrence(gates[:, 1:2], carry[:, 1:2], recurrent, None) if shape[1] > 1 else first
    assert torch.equal(alone[:, 0], first[:, 1])


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_layer_on_a_gpu_is_the_loop(dtype):
    torch.manual_seed(0)
    layer = HighwayLayer(40, 300).to(DEVICE)
    inputs, mask = torch.randn(12, 20, 40, device=DEVICE), torch.rand(12, 20, device=DEVICE) < 0.9
    with torch.autocast(DEVICE, dtype, enabled=dtype != torch.float32):
        got = layer(inputs, mask)
    with choice.plain_only():
        want = layer(inputs, mask)
    assert got.dtype == torch.float32
    assert ((got - want).norm() / want.norm()).item() < TOLERANCE[dtype]
