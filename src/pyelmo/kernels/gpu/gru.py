"""The recurrence of GRUs on a GPU: `model.recurrent.gru_recurrence`, all steps in one launch.

S recurrences that run together (the two directions), T time, B batch, H hidden. As in `highway_lstm.py`, a program
computes all steps of some rows of the batch; products are in the compute type, all else is in float32.
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

TILES = {
    "forward": {"ROWS": 16, "COLUMNS": 128, "PART": 32, "num_warps": 8, "num_stages": 3},
    "backward": {"ROWS": 16, "COLUMNS": 128, "PART": 64, "num_warps": 8, "num_stages": 3},
}


@triton.jit(do_not_specialize=["time", "batch"])
def _forward(
    gates: tl.tensor,  # (S, T, B, 3H): W x + b
    weights: tl.tensor,  # (S, H, 3H)
    bias: tl.tensor,  # (S, H)
    active: tl.tensor,  # (S, T, B, 4H): reset, update, new after their activation; U h + bias of `new`
    outputs: tl.tensor,  # (S, T, B, H)
    time: tl.tensor, batch: tl.tensor,
    H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PART: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    layer = tl.program_id(1)
    for step in range(time):
        at = ((layer * time + step).to(tl.int64) * batch + rows)[:, None]
        before = at - batch
        for first in range(0, H, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < batch)[:, None] & (columns < H)[None, :]
            reset = tl.load(gates + at * 3 * H + columns, mask=inside, other=0.0)
            update = tl.load(gates + at * 3 * H + H + columns, mask=inside, other=0.0)
            new = tl.load(gates + at * 3 * H + 2 * H + columns, mask=inside, other=0.0)
            recurrent_new = tl.load(bias + layer * H + columns, mask=columns < H, other=0.0)
            recurrent_new = tl.zeros((ROWS, COLUMNS), tl.float32) + recurrent_new[None, :]
            last = tl.zeros((ROWS, COLUMNS), tl.float32)
            if step > 0:
                last = tl.load(outputs + before * H + columns, mask=inside, other=0.0)
                for part in range(0, H, PART):
                    inner = part + tl.arange(0, PART)
                    known = (rows < batch)[:, None] & (inner < H)[None, :]
                    hidden = tl.load(outputs + before * H + inner, mask=known, other=0.0)
                    hidden = hidden.to(weights.dtype.element_ty)
                    tile = weights + (layer * H + inner[:, None]) * 3 * H + columns[None, :]
                    real = (inner < H)[:, None] & (columns < H)[None, :]
                    reset = tl.dot(hidden, tl.load(tile, mask=real, other=0.0), reset, input_precision="ieee")
                    update = tl.dot(hidden, tl.load(tile + H, mask=real, other=0.0), update, input_precision="ieee")
                    recurrent_new = tl.dot(
                        hidden, tl.load(tile + 2 * H, mask=real, other=0.0), recurrent_new, input_precision="ieee"
                    )
            reset, update = sigmoid(reset), sigmoid(update)
            new = tanh(new + reset * recurrent_new)
            tl.store(outputs + at * H + columns, (1.0 - update) * new + update * last, mask=inside)
            tl.store(active + at * 4 * H + columns, reset, mask=inside)
            tl.store(active + at * 4 * H + H + columns, update, mask=inside)
            tl.store(active + at * 4 * H + 2 * H + columns, new, mask=inside)
            tl.store(active + at * 4 * H + 3 * H + columns, recurrent_new, mask=inside)
        tl.debug_barrier()  # the next step reads what all threads of this program wrote


@triton.jit(do_not_specialize=["time", "batch"])
def _backward(
    weights: tl.tensor,  # (S, 3H, H)
    active: tl.tensor,  # (S, T, B, 4H)
    outputs: tl.tensor,  # (S, T, B, H)
    grad_outputs: tl.tensor,  # (S, T, B, H)
    grads: tl.tensor,  # (S, T, B, 4H): of U h + bias (reset, update, new), and of W x + b of `new`
    grad_state: tl.tensor,  # (S, B, H): zero at first
    time: tl.tensor, batch: tl.tensor,
    H: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PART: tl.constexpr,
) -> None:  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    layer = tl.program_id(1)
    for back in range(time):
        step = time - 1 - back
        at = ((layer * time + step).to(tl.int64) * batch + rows)[:, None]
        for first in range(0, H, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < batch)[:, None] & (columns < H)[None, :]
            state = grad_state + (layer * batch + rows[:, None]) * H + columns
            grad = tl.load(grad_outputs + at * H + columns, mask=inside, other=0.0)
            grad += tl.load(state, mask=inside, other=0.0)
            if back > 0:
                for part in range(0, 3 * H, PART):
                    inner = part + tl.arange(0, PART)
                    known = (rows < batch)[:, None] & (inner < 3 * H)[None, :]
                    later = tl.load(grads + (at + batch) * 4 * H + inner, mask=known, other=0.0)
                    real = (inner < 3 * H)[:, None] & (columns < H)[None, :]
                    tile = weights + (layer * 3 * H + inner[:, None]) * H + columns[None, :]
                    grad = tl.dot(
                        later.to(weights.dtype.element_ty), tl.load(tile, mask=real, other=0.0), grad,
                        input_precision="ieee",
                    )  # fmt: skip
            reset = tl.load(active + at * 4 * H + columns, mask=inside, other=0.0)
            update = tl.load(active + at * 4 * H + H + columns, mask=inside, other=0.0)
            new = tl.load(active + at * 4 * H + 2 * H + columns, mask=inside, other=0.0)
            recurrent_new = tl.load(active + at * 4 * H + 3 * H + columns, mask=inside, other=0.0)
            last = tl.zeros((ROWS, COLUMNS), tl.float32)
            if step > 0:
                last = tl.load(outputs + (at - batch) * H + columns, mask=inside, other=0.0)
            d_new = grad * (1.0 - update) * (1.0 - new * new)
            to = grads + at * 4 * H + columns
            tl.store(to, d_new * recurrent_new * reset * (1.0 - reset), mask=inside)
            tl.store(to + H, grad * (last - new) * update * (1.0 - update), mask=inside)
            tl.store(to + 2 * H, d_new * reset, mask=inside)
            tl.store(to + 3 * H, d_new, mask=inside)
            tl.store(state, grad * update, mask=inside)
        tl.debug_barrier()  # as in forward


def fast_gru_recurrence(gates: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """Compute `gru_recurrence` on a GPU; products are in the dtype of `gates` or of autocast."""
    outputs: Tensor = _GruRecurrence.apply(gates, recurrent, bias, compute_type(gates))
    return outputs


class _GruRecurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, recurrent: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
        layers, time, batch, width = gates.shape
        size = width // 3
        ctx.dtype, ctx.dtypes = dtype, (gates.dtype, recurrent.dtype, bias.dtype)
        gates = gates.float().contiguous()
        active, outputs = (gates.new_empty(layers, time, batch, columns * size) for columns in (4, 1))
        with torch.cuda.device_of(gates):
            _forward[(triton.cdiv(batch, TILES["forward"]["ROWS"]), layers)](
                gates, recurrent.to(dtype).transpose(1, 2).contiguous(), bias.float().contiguous(), active, outputs,
                time, batch, H=size, **TILES["forward"],
            )  # fmt: skip
        ctx.save_for_backward(recurrent, active, outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, active, outputs = ctx.saved_tensors
        layers, time, batch, size = outputs.shape
        grads = torch.empty_like(active)
        with torch.cuda.device_of(active):
            _backward[(triton.cdiv(batch, TILES["backward"]["ROWS"]), layers)](
                recurrent.to(ctx.dtype).contiguous(), active, outputs, grad_outputs.float().contiguous(), grads,
                torch.zeros_like(outputs[:, 0]), time, batch, H=size, **TILES["backward"],
            )  # fmt: skip
        reset, update, recurrent_new, new = grads.chunk(4, 3)
        # The hidden state before the first step is zero.
        later = grads[:, 1:, :, : 3 * size].flatten(1, 2).to(ctx.dtype)
        before = outputs[:, :-1].flatten(1, 2).to(ctx.dtype)
        gradients = (torch.cat([reset, update, new], 3), later.transpose(1, 2) @ before, recurrent_new.sum((1, 2)))
        return (*(grad.to(dtype) for grad, dtype in zip(gradients, ctx.dtypes, strict=True)), None)
