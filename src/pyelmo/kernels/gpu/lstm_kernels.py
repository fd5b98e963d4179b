"""The Triton kernels of the projected LSTM: one step's cells and outputs, forward and backward.

N directions, B batch, T time, C cells, P output, K = D + P (the size of [x, h]). `lstm.py` launches them.
"""

# Triton's decorator has no types, and the constants of its kernels are in upper case.
# mypy: disable-error-code="untyped-decorator, no-untyped-call, no-any-return"
# ruff: noqa: N803

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from pyelmo.kernels.gpu.activations import sigmoid, tanh


@triton.jit
def _clamp(x: tl.tensor, bound: tl.tensor) -> Any:
    # Not minimum and maximum, which lose a NaN: a run that diverged would not be noticed.
    return tl.where(x > bound, bound, tl.where(x < -bound, -bound, x))


@triton.jit
def _gates(gates: tl.tensor, bias: tl.tensor, columns: tl.tensor, cells: tl.tensor, inside: tl.tensor) -> Any:
    """Return the four gates of some cells of one row, after their activation functions."""
    in_gate = tl.load(gates + columns, mask=inside, other=0.0).to(tl.float32) + bias[0]
    forget_gate = tl.load(gates + cells + columns, mask=inside, other=0.0).to(tl.float32) + bias[1]
    candidate = tl.load(gates + 2 * cells + columns, mask=inside, other=0.0).to(tl.float32) + bias[2]
    out_gate = tl.load(gates + 3 * cells + columns, mask=inside, other=0.0).to(tl.float32) + bias[3]
    return sigmoid(in_gate), sigmoid(forget_gate), tanh(candidate), sigmoid(out_gate)


@triton.jit
def _biases(bias: tl.tensor, columns: tl.tensor, cells: tl.tensor, inside: tl.tensor) -> Any:
    return (
        tl.load(bias + columns, mask=inside, other=0.0),
        tl.load(bias + cells + columns, mask=inside, other=0.0),
        tl.load(bias + 2 * cells + columns, mask=inside, other=0.0),
        tl.load(bias + 3 * cells + columns, mask=inside, other=0.0),
    )


@triton.jit(do_not_specialize=["step", "time", "batch"])
def cell_forward(
    gates: tl.tensor,  # (N, T, B, 4C)
    bias: tl.tensor,  # (N, 4C)
    states: tl.tensor,  # (N, T + 1, B, C), reads the slot of this step and writes that of the next
    out: tl.tensor,  # (N, T, B, C)
    mask: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, cells: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Compute the new cell state and the hidden state before its projection. A program has one row of the batch."""
    # Rows are the fastest axis of the grid, so that neighbouring programs share the biases in their cache.
    row, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < cells
    if KEEP:
        at = (n * time + step) * batch + row
        old = states + ((n * (time + 1) + step) * batch + row) * cells + columns
        new = old + batch * cells
    else:  # a single slot, overwritten at every step
        at = n * batch + row
        old = states + at * cells + columns
        new = old
    biases = _biases(bias + n * 4 * cells, columns, cells, inside)
    in_gate, forget_gate, candidate, out_gate = _gates(gates + at * 4 * cells, biases, columns, cells, inside)
    old_cell = tl.load(old, mask=inside, other=0.0)
    cell = tl.fma(forget_gate, old_cell, in_gate * candidate)  # fma rounds as backward does
    if CLIP:
        cell = _clamp(cell, clip)
    hidden = out_gate * tanh(cell)
    tl.store(out + at * cells + columns, hidden.to(out.dtype.element_ty), mask=inside)
    if MASK:
        cell = tl.where(tl.load(mask + row * time + step) != 0, cell, old_cell)
    tl.store(new, cell, mask=inside)


@triton.jit(do_not_specialize=["step"])
def cell_backward(
    gates: tl.tensor,  # (N, T, B, 4C)
    bias: tl.tensor,  # (N, 4C)
    states: tl.tensor,  # (N, T + 1, B, C)
    grad_out: tl.tensor,  # (N, B, C)
    grad_cell: tl.tensor,  # (N, B, C), read: of the new cell state; written: of the old one
    grad_gates: tl.tensor,  # (N, T, B, 4C)
    sums: tl.tensor,  # (N, B / ROWS, 4C), the bias gradient of each program's rows
    mask: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, cells: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
) -> None:  # fmt: skip
    block, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < cells
    biases = _biases(bias + n * 4 * cells, columns, cells, inside)
    sum_in_gate = tl.zeros((BLOCK,), tl.float32)
    sum_forget_gate = tl.zeros((BLOCK,), tl.float32)
    sum_candidate = tl.zeros((BLOCK,), tl.float32)
    sum_out_gate = tl.zeros((BLOCK,), tl.float32)
    for row in range(block * ROWS, tl.minimum(batch, (block + 1) * ROWS)):
        here = ((n * time + step) * batch + row) * 4 * cells
        in_gate, forget_gate, candidate, out_gate = _gates(gates + here, biases, columns, cells, inside)
        old = states + ((n * (time + 1) + step) * batch + row) * cells + columns
        old_cell = tl.load(old, mask=inside, other=0.0)
        unclipped = tl.fma(forget_gate, old_cell, in_gate * candidate)
        tanh_cell = tanh(_clamp(unclipped, clip) if CLIP else unclipped)
        at = (n * batch + row) * cells + columns
        d_out = tl.load(grad_out + at, mask=inside, other=0.0).to(tl.float32)
        d_new = tl.load(grad_cell + at, mask=inside, other=0.0)
        d_cell = d_out * out_gate * (1.0 - tanh_cell * tanh_cell)
        if MASK:
            is_token = tl.load(mask + row * time + step) != 0
            d_cell += tl.where(is_token, d_new, 0.0)
        else:
            d_cell += d_new
        if CLIP:
            d_cell = tl.where((unclipped >= -clip) & (unclipped <= clip), d_cell, 0.0)
        d_old = d_cell * forget_gate
        if MASK:
            d_old += tl.where(is_token, 0.0, d_new)
        tl.store(grad_cell + at, d_old, mask=inside)
        d_in_gate = d_cell * candidate * in_gate * (1.0 - in_gate)
        d_forget_gate = d_cell * old_cell * forget_gate * (1.0 - forget_gate)
        d_candidate = d_cell * in_gate * (1.0 - candidate * candidate)
        d_out_gate = d_out * tanh_cell * out_gate * (1.0 - out_gate)
        to = grad_gates + here + columns
        tl.store(to, d_in_gate.to(grad_gates.dtype.element_ty), mask=inside)
        tl.store(to + cells, d_forget_gate.to(grad_gates.dtype.element_ty), mask=inside)
        tl.store(to + 2 * cells, d_candidate.to(grad_gates.dtype.element_ty), mask=inside)
        tl.store(to + 3 * cells, d_out_gate.to(grad_gates.dtype.element_ty), mask=inside)
        sum_in_gate += d_in_gate
        sum_forget_gate += d_forget_gate
        sum_candidate += d_candidate
        sum_out_gate += d_out_gate
    to = sums + (n * tl.num_programs(0) + block) * 4 * cells + columns
    tl.store(to, tl.load(to, mask=inside) + sum_in_gate, mask=inside)
    tl.store(to + cells, tl.load(to + cells, mask=inside) + sum_forget_gate, mask=inside)
    tl.store(to + 2 * cells, tl.load(to + 2 * cells, mask=inside) + sum_candidate, mask=inside)
    tl.store(to + 3 * cells, tl.load(to + 3 * cells, mask=inside) + sum_out_gate, mask=inside)


@triton.jit(do_not_specialize=["step", "time", "batch"])
def output_forward(
    raw: tl.tensor,  # (N, T, B, P)
    joint: tl.tensor,  # (N, T + 1, B, K), writes h of the next step's [x, h]
    outputs: tl.tensor,  # (N, B, T, P)
    mask: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, size: tl.tensor, width: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Clip the projection: the output of this step and the hidden state of the next."""
    row, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < size
    slot = n * time + step if KEEP else n
    value = tl.load(raw + (slot * batch + row) * size + columns, mask=inside, other=0.0)
    if CLIP:
        value = _clamp(value.to(tl.float32), clip).to(raw.dtype.element_ty)
    tl.store(outputs + ((n * batch + row) * time + step) * size + columns, value, mask=inside)
    old = joint + ((n * (time + 1) + step) * batch + row) * width + (width - size) + columns
    if MASK:
        value = tl.where(tl.load(mask + row * time + step) != 0, value, tl.load(old, mask=inside, other=0.0))
    tl.store(old + batch * width, value, mask=inside)


@triton.jit(do_not_specialize=["step"])
def output_backward(
    raw: tl.tensor,  # (N, T, B, P)
    grad_joint: tl.tensor,  # (N, T + 1, B, K), reads h of the next step
    grad_outputs: tl.tensor,  # (N, B, T, P)
    grad_raw: tl.tensor,  # (N, T, B, P)
    waiting: tl.tensor,  # (N, B, P), the gradient that passes the masked steps of a row unchanged
    mask: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, size: tl.tensor, width: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, OUTPUTS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < size
    later = grad_joint + ((n * (time + 1) + step + 1) * batch + row) * width + (width - size) + columns
    grad = tl.load(later, mask=inside, other=0.0).to(tl.float32)
    if MASK:
        is_token = tl.load(mask + row * time + step) != 0
        wait = waiting + (n * batch + row) * size + columns
        grad += tl.load(wait, mask=inside, other=0.0)
        tl.store(wait, tl.where(is_token, 0.0, grad), mask=inside)
        grad = tl.where(is_token, grad, 0.0)
    if OUTPUTS:
        here = grad_outputs + ((n * batch + row) * time + step) * size + columns
        grad += tl.load(here, mask=inside, other=0.0).to(tl.float32)
    at = ((n * time + step) * batch + row) * size + columns
    if CLIP:
        value = tl.load(raw + at, mask=inside, other=0.0).to(tl.float32)
        grad = tl.where((value >= -clip) & (value <= clip), grad, 0.0)
    tl.store(grad_raw + at, grad.to(grad_raw.dtype.element_ty), mask=inside)
