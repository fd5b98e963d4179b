"""What the tests of the kernels share: the device, the tolerances and the comparison."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

# Relative error, |fast - reference| / |reference|, of an output or a gradient.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # conftest.py sets it without a GPU

# The reference computes in float32, not in TF32, which torch's convolutions use by default.
torch.backends.cudnn.allow_tf32 = False


def gradients(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of a fixed random weighted sum of the outputs."""
    generator = torch.Generator().manual_seed(1)
    weighted = [
        (output.float() * torch.randn(output.shape, generator=generator).to(output.device)).sum() for output in outputs
    ]
    return list(torch.autograd.grad(torch.stack(weighted).sum(), leaves))


def relative_error(got: Tensor, want: Tensor) -> float:
    assert got.shape == want.shape
    want = want.double()
    return ((got.double() - want).norm() / want.norm().clamp_min(1e-12)).item()


def check(
    fast: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    plain: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    values: dict[str, Tensor],
    dtype: torch.dtype,
) -> None:
    """Compare outputs and gradients of both functions on the same values: the fast one in `dtype`, the plain in float32."""
    rounded = {name: value.to(dtype) for name, value in values.items()}
    leaves = [value.clone().requires_grad_() for value in rounded.values()]
    judges = [value.float().clone().requires_grad_() for value in rounded.values()]
    got, want = fast(leaves), plain(judges)
    for number, (one, other) in enumerate(zip(got, want, strict=True)):
        assert relative_error(one, other) < TOLERANCE[dtype], f"output {number}"
    for name, one, other in zip(values, gradients(got, leaves), gradients(want, judges), strict=True):
        assert relative_error(one, other) < TOLERANCE[dtype], f"gradient of {name}"
