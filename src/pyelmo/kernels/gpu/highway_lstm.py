"""The recurrence of the highway LSTM on a GPU: `model.highway_lstm.highway_recurrence`, all steps in one launch.

T time, B batch, H hidden.

Sentences are independent: a program computes all steps of some rows of the batch and never waits for another one. It
reads the result of the previous step back from memory. The gradient of the weights has no recurrence: one product after
the loop. Products are in the compute type (bfloat16 under autocast), all else is in float32.
"""

# Triton's decorator has no types, and the constants of its kernels are in upper case.
# mypy: disable-error-code="untyped-decorator, no-untyped-call, no-any-return"
# ruff: noqa: N803

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyelmo.kernels.choice import compute_type
from pyelmo.kernels.gpu.activations import sigmoid, tanh

# The fastest sizes on an H200. A program has ROWS rows of the batch: 16 is the minimum of a tensor core, and more (32,
# 64) read the weights less often, which helps if other programs use the GPU, too.
TILES = {
    "forward": {"ROWS": 16, "COLUMNS": 128, "PART": 32, "num_warps": 8, "num_stages": 3},
    "backward": {"ROWS": 16, "COLUMNS": 128, "PART": 64, "num_warps": 8, "num_stages": 3},
}


@triton.jit
def _add_product(hidden: tl.tensor, tile: tl.tensor, inside: tl.tensor, total: tl.tensor) -> Any:
    return tl.dot(hidden, tl.load(tile, mask=inside, other=0.0), total, input_precision="ieee")


@triton.jit(do_not_specialize=["time", "batch"])
def _forward(
    gates: tl.tensor,  # (T, B, 5H): W x + b
    carry: tl.tensor,  # (T, B, H)
    weights: tl.tensor,  # (H, 5H)
    keep: tl.tensor,  # (B, H): the dropout mask
    active: tl.tensor,  # (T, B, 5H): the gates after their activation
    cells: tl.tensor,  # (T, B, H)
    outputs: tl.tensor,  # (T, B, H)
    time: tl.tensor, batch: tl.tensor,
    H: tl.constexpr, KEEP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PART: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    for step in range(time):
        at = (step * batch + rows).to(tl.int64)[:, None]
        before = at - batch
        for first in range(0, H, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < batch)[:, None] & (columns < H)[None, :]
            out_gate = tl.load(gates + at * 5 * H + columns, mask=inside, other=0.0)
            transform_gate = tl.load(gates + at * 5 * H + H + columns, mask=inside, other=0.0)
            in_gate = tl.load(gates + at * 5 * H + 2 * H + columns, mask=inside, other=0.0)
            forget_gate = tl.load(gates + at * 5 * H + 3 * H + columns, mask=inside, other=0.0)
            candidate = tl.load(gates + at * 5 * H + 4 * H + columns, mask=inside, other=0.0)
            cell = tl.zeros((ROWS, COLUMNS), tl.float32)
            if step > 0:
                cell = tl.load(cells + before * H + columns, mask=inside, other=0.0)
                for part in range(0, H, PART):
                    inner = part + tl.arange(0, PART)
                    known = (rows < batch)[:, None] & (inner < H)[None, :]
                    hidden = tl.load(outputs + before * H + inner, mask=known, other=0.0)
                    hidden = hidden.to(weights.dtype.element_ty)
                    tile = weights + inner[:, None] * 5 * H + columns[None, :]
                    real = (inner < H)[:, None] & (columns < H)[None, :]
                    out_gate = _add_product(hidden, tile, real, out_gate)
                    transform_gate = _add_product(hidden, tile + H, real, transform_gate)
                    in_gate = _add_product(hidden, tile + 2 * H, real, in_gate)
                    forget_gate = _add_product(hidden, tile + 3 * H, real, forget_gate)
                    candidate = _add_product(hidden, tile + 4 * H, real, candidate)
            out_gate, transform_gate, in_gate, forget_gate = (
                sigmoid(out_gate),
                sigmoid(transform_gate),
                sigmoid(in_gate),
                sigmoid(forget_gate),
            )
            candidate = tanh(candidate)
            cell = forget_gate * cell + in_gate * candidate
            straight = tl.load(carry + at * H + columns, mask=inside, other=0.0)
            value = transform_gate * out_gate * tanh(cell) + (1.0 - transform_gate) * straight
            if KEEP:
                value *= tl.load(keep + rows[:, None] * H + columns, mask=inside, other=0.0)
            tl.store(outputs + at * H + columns, value, mask=inside)
            tl.store(cells + at * H + columns, cell, mask=inside)
            tl.store(active + at * 5 * H + columns, out_gate, mask=inside)
            tl.store(active + at * 5 * H + H + columns, transform_gate, mask=inside)
            tl.store(active + at * 5 * H + 2 * H + columns, in_gate, mask=inside)
            tl.store(active + at * 5 * H + 3 * H + columns, forget_gate, mask=inside)
            tl.store(active + at * 5 * H + 4 * H + columns, candidate, mask=inside)
        tl.debug_barrier()  # the next step reads what all threads of this program wrote


@triton.jit(do_not_specialize=["time", "batch"])
def _backward(
    carry: tl.tensor,  # (T, B, H)
    weights: tl.tensor,  # (5H, H)
    keep: tl.tensor,  # (B, H)
    active: tl.tensor,  # (T, B, 5H)
    cells: tl.tensor,  # (T, B, H)
    grad_outputs: tl.tensor,  # (T, B, H)
    grad_gates: tl.tensor,  # (T, B, 5H)
    grad_carry: tl.tensor,  # (T, B, H)
    grad_cell: tl.tensor,  # (B, H): zero at first
    time: tl.tensor, batch: tl.tensor,
    H: tl.constexpr, KEEP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PART: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    for back in range(time):
        step = time - 1 - back
        at = (step * batch + rows).to(tl.int64)[:, None]
        for first in range(0, H, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < batch)[:, None] & (columns < H)[None, :]
            grad = tl.load(grad_outputs + at * H + columns, mask=inside, other=0.0)
            if back > 0:
                for part in range(0, 5 * H, PART):
                    inner = part + tl.arange(0, PART)
                    known = (rows < batch)[:, None] & (inner < 5 * H)[None, :]
                    later = tl.load(grad_gates + (at + batch) * 5 * H + inner, mask=known, other=0.0)
                    real = (inner < 5 * H)[:, None] & (columns < H)[None, :]
                    tile = tl.load(weights + inner[:, None] * H + columns[None, :], mask=real, other=0.0)
                    grad = tl.dot(later.to(weights.dtype.element_ty), tile, grad, input_precision="ieee")
            if KEEP:
                grad *= tl.load(keep + rows[:, None] * H + columns, mask=inside, other=0.0)
            out_gate = tl.load(active + at * 5 * H + columns, mask=inside, other=0.0)
            transform_gate = tl.load(active + at * 5 * H + H + columns, mask=inside, other=0.0)
            in_gate = tl.load(active + at * 5 * H + 2 * H + columns, mask=inside, other=0.0)
            forget_gate = tl.load(active + at * 5 * H + 3 * H + columns, mask=inside, other=0.0)
            candidate = tl.load(active + at * 5 * H + 4 * H + columns, mask=inside, other=0.0)
            squashed = tanh(tl.load(cells + at * H + columns, mask=inside, other=0.0))
            straight = tl.load(carry + at * H + columns, mask=inside, other=0.0)
            before = tl.zeros((ROWS, COLUMNS), tl.float32)
            if step > 0:
                before = tl.load(cells + (at - batch) * H + columns, mask=inside, other=0.0)
            state = grad_cell + rows[:, None] * H + columns
            d_cell = tl.load(state, mask=inside, other=0.0) + grad * transform_gate * out_gate * (
                1.0 - squashed * squashed
            )
            to = grad_gates + at * 5 * H + columns
            tl.store(to, grad * transform_gate * squashed * out_gate * (1.0 - out_gate), mask=inside)
            tl.store(
                to + H, grad * (out_gate * squashed - straight) * transform_gate * (1.0 - transform_gate), mask=inside
            )
            tl.store(to + 2 * H, d_cell * candidate * in_gate * (1.0 - in_gate), mask=inside)
            tl.store(to + 3 * H, d_cell * before * forget_gate * (1.0 - forget_gate), mask=inside)
            tl.store(to + 4 * H, d_cell * in_gate * (1.0 - candidate * candidate), mask=inside)
            tl.store(grad_carry + at * H + columns, grad * (1.0 - transform_gate), mask=inside)
            tl.store(state, d_cell * forget_gate, mask=inside)
        tl.debug_barrier()  # as in forward


def fast_highway_recurrence(gates: Tensor, carry: Tensor, recurrent: Tensor, dropout_mask: Tensor | None) -> Tensor:
    """Compute `highway_recurrence` on a GPU; products are in the dtype of `gates` or of autocast."""
    outputs: Tensor = _HighwayRecurrence.apply(gates, carry, recurrent, dropout_mask, compute_type(gates))
    return outputs


class _HighwayRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, carry: Tensor, recurrent: Tensor, keep: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        time, batch, size = carry.shape
        ctx.dtype, ctx.dtypes = dtype, (gates.dtype, carry.dtype, recurrent.dtype)
        gates, carry = gates.float().contiguous(), carry.float().contiguous()
        keep = None if keep is None else keep.float().contiguous()
        active, cells, outputs = torch.empty_like(gates), torch.empty_like(carry), torch.empty_like(carry)
        with torch.cuda.device_of(gates):
            _forward[(triton.cdiv(batch, TILES["forward"]["ROWS"]),)](
                gates, carry, recurrent.to(dtype).T.contiguous(), carry if keep is None else keep, active, cells,
                outputs, time, batch, H=size, KEEP=keep is not None, **TILES["forward"],
            )  # fmt: skip
        ctx.save_for_backward(carry, recurrent, keep, active, cells, outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        carry, recurrent, keep, active, cells, outputs = ctx.saved_tensors
        time, batch, size = carry.shape
        grad_gates, grad_carry = torch.empty_like(active), torch.empty_like(carry)
        with torch.cuda.device_of(carry):
            _backward[(triton.cdiv(batch, TILES["backward"]["ROWS"]),)](
                carry, recurrent.to(ctx.dtype).contiguous(), carry if keep is None else keep, active, cells,
                grad_outputs.float().contiguous(), grad_gates, grad_carry, torch.zeros_like(carry[0]), time, batch,
                H=size, KEEP=keep is not None, **TILES["backward"],
            )  # fmt: skip
        # The hidden state before the first step is zero.
        later, before = grad_gates[1:].flatten(0, 1).to(ctx.dtype), outputs[:-1].flatten(0, 1).to(ctx.dtype)
        grads = (grad_gates, grad_carry, later.T @ before)
        return (*(grad.to(dtype) for grad, dtype in zip(grads, ctx.dtypes, strict=True)), None, None)
