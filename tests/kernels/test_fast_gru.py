"""The GRUs' recurrence in one launch computes what the loop computes, forward and backward."""

from __future__ import annotations

import pytest
import torch
from parity import DEVICE, INTERPRETED, TOLERANCE, check, gradients
from torch import Tensor

from pyelmo.kernels.choice import plain_only
from pyelmo.model.recurrent import BiGru, gru_recurrence

pytest.importorskip("triton")
from pyelmo.kernels.gpu.gru import TILES, fast_gru_recurrence

pytestmark = pytest.mark.gpu

# Rows and columns that fill no tile, and more columns than one; the last is the size of the QA network.
SHAPES = [(1, 1, 3), (4, 5, 20), (3, 17, 70)] if INTERPRETED else [(1, 1, 3), (4, 17, 70), (20, 5, 150), (150, 45, 90)]


def values(time: int, batch: int, size: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {
        "gates": ((2, time, batch, 3 * size), 1.0), "recurrent": ((2, 3 * size, size), size**-0.5),
        "bias": ((2, size), 0.1),
    }  # fmt: skip
    return {name: torch.randn(shape, generator=generator).mul(by).to(DEVICE) for name, (shape, by) in shapes.items()}


@pytest.fixture(params=[32, 128])
def columns(request, monkeypatch) -> int:
    """Columns of a state in one tile."""
    for tiles in TILES.values():
        monkeypatch.setitem(tiles, "COLUMNS", request.param)
    return request.param


# Triton's interpreter multiplies bfloat16 matrices as if they were integers.
@pytest.mark.parametrize("dtype", [torch.float32] if INTERPRETED else TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("columns")
def test_outputs_and_gradients_agree(shape, dtype):
    check(
        lambda leaves: [fast_gru_recurrence(*leaves)], lambda leaves: [gru_recurrence(*leaves)], values(*shape), dtype
    )


def test_the_same_rows_give_the_same_bits_in_any_batch():
    gates, recurrent, bias = leaves = [tensor.requires_grad_() for tensor in values(*SHAPES[-1]).values()]
    first = fast_gru_recurrence(*leaves)
    before = gradients([first], leaves)
    for _ in range(2 if INTERPRETED else 10):
        again = fast_gru_recurrence(*leaves)
        assert torch.equal(again, first)
        assert all(torch.equal(one, other) for one, other in zip(gradients([again], leaves), before, strict=True))
    assert torch.equal(fast_gru_recurrence(gates[:, :, 1:2], recurrent, bias), first[:, :, 1:2])


def test_a_layer_is_torchs_own():
    torch.manual_seed(0)
    layer, inputs = BiGru(7, 20).to(DEVICE), torch.randn(3, 6, 7, device=DEVICE)
    mask = torch.tensor([[6], [3], [1]], device=DEVICE) > torch.arange(6, device=DEVICE)
    with plain_only():
        plain = layer(inputs, mask)
    fast = layer.run_recurrence(inputs, mask, fast_gru_recurrence)
    assert torch.allclose(fast, plain, atol=1e-3)  # cuDNN's products are of TF32
    weights = [*layer.parameters()]
    for one, other in zip(gradients([fast], weights), gradients([plain], weights), strict=True):
        assert torch.allclose(one, other, atol=1e-2, rtol=1e-2)
