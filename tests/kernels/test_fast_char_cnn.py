"""The fused convolutions give the features of the plain ones, and the same gradients of filters and symbols."""

from __future__ import annotations

import pytest
import torch
from parity import DEVICE, INTERPRETED, TOLERANCE, check, gradients, relative_error
from torch import Tensor, nn

pytest.importorskip("triton")
from pyelmo.kernels.gpu.char_cnn import fast_conv_max
from pyelmo.model.char_cnn import conv_max

pytestmark = pytest.mark.gpu

FILTERS = [(1, 4), (2, 8), (3, 8), (7, 16)] if INTERPRETED else [(1, 32), (2, 32), (3, 64), (6, 200), (7, 300)]
WORDS = 21 if INTERPRETED else 1003


def spelled(words: int = WORDS, length: int = 50, symbols: int = 262) -> Tensor:
    """Words of every length from nothing to the full row, some of them with repeats, then padding."""
    generator = torch.Generator().manual_seed(0)
    chars = torch.randint(1, symbols - 1, (words, length), generator=generator)
    chars[::3] = torch.randint(1, 4, chars[::3].shape, generator=generator)  # few symbols: windows come twice
    lengths = torch.arange(words) % (length + 1)
    padded = torch.where(torch.arange(length) < lengths[:, None], chars, symbols - 1)
    padded[1] = 0  # the padding token
    return padded[torch.randperm(words, generator=generator)].to(DEVICE)


def parameters(dim: int, symbols: int = 262) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = {"table": ((symbols, dim), 1.0)}
    for number, (width, count) in enumerate(FILTERS):
        shapes[f"weight {number}"] = ((count, dim, width), (width * dim) ** -0.5)
    for number, (_, count) in enumerate(FILTERS):
        shapes[f"bias {number}"] = ((count,), 0.2)
    return {name: torch.randn(shape, generator=generator).mul(by).to(DEVICE) for name, (shape, by) in shapes.items()}


def clear(chars: Tensor, leaves: list[Tensor]) -> Tensor:
    """Whether no other window is near the maximum (U, F); otherwise rounding decides which one has the gradient."""
    table, *rest = (leaf.detach().double() for leaf in leaves)
    embedded = nn.functional.embedding(chars, table).transpose(1, 2)
    margins = []
    for weight, bias in zip(rest[: len(FILTERS)], rest[len(FILTERS) :], strict=True):
        values = nn.functional.conv1d(embedded, weight, bias)
        most = values.amax(-1, keepdim=True)
        others = values.masked_fill(values > most - 1e-12, -torch.inf)  # without the windows that are the same one
        margins.append(most.squeeze(-1) - others.amax(-1))
    return torch.cat(margins, -1) > 1e-4


def arranged(function, chars, padding, leaves):  # type: ignore[no-untyped-def]
    table, *rest = leaves
    features = function(chars, table, rest[: len(FILTERS)], rest[len(FILTERS) :], padding)
    return (features * clear(chars, leaves),)


# Triton's interpreter multiplies bfloat16 matrices as if they were integers.
@pytest.mark.parametrize("dtype", [torch.float32] if INTERPRETED else TOLERANCE)
@pytest.mark.parametrize(("dim", "padding"), [(16, 0), (16, None), (5, 0), (50, None)])
def test_features_and_gradients_agree(dtype, dim, padding):
    chars = spelled()
    check(
        lambda leaves: arranged(fast_conv_max, chars, padding, leaves),
        lambda leaves: arranged(conv_max, chars, padding, leaves),
        parameters(dim), dtype,
    )  # fmt: skip


def test_rows_just_as_long_as_the_widest_filter_have_one_position_for_it():
    chars = spelled(words=9, length=7)
    values = list(parameters(16).values())
    got, want = (arranged(function, chars, 0, values)[0] for function in (fast_conv_max, conv_max))
    assert relative_error(got, want) < TOLERANCE[torch.float32]


def test_no_words_have_no_features_and_a_zero_gradient():
    leaves = [value.requires_grad_() for value in parameters(16).values()]
    features = arranged(fast_conv_max, spelled()[:0], 0, leaves)
    assert features[0].shape == (0, sum(count for _, count in FILTERS))
    assert all(grad.eq(0).all() for grad in gradients(features, leaves))
