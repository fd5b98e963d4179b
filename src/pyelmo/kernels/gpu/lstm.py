"""Projected LSTM with clipping on a GPU: the equations of `model.lstm.projected_lstm`, forward and backward.

N directions, B batch, T time, D input, C cells, P output, K = D + P.

A step forward is one product [x, h] W for all directions, a kernel from gates to cell, one product for the projection
and a kernel that clips it. What backward needs stays as it was computed: the gates before their non-linearities, the
cells, the projection before its clip. The weights' gradients have no recurrence: one product each, after the loop.

Arithmetic is in float32, storage in the compute type (bfloat16 under autocast), the cell's in float32. Clipping is
exact: the gradient is zero where the unclipped value lies outside the bounds, as `torch.clamp` has it.
"""

# Triton gives its decorator no types, and its kernels take their constants in capitals.
# mypy: disable-error-code="untyped-decorator, no-untyped-call, no-any-return"
# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyelmo.kernels import compute_type

ROWS = 16  # rows of the batch that one program of the backward kernel sums the bias gradient over


@triton.jit
def _sigmoid(x: tl.tensor) -> Any:
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x: tl.tensor) -> Any:
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0


@triton.jit
def _clamp(x: tl.tensor, bound: tl.tensor) -> Any:
    # Not minimum and maximum: those lose a NaN, and a run that diverged would go on unseen.
    return tl.where(x > bound, bound, tl.where(x < -bound, -bound, x))


@triton.jit
def _gates(gates: tl.tensor, bias: tl.tensor, places: tl.tensor, cells: tl.tensor, inside: tl.tensor) -> Any:
    """The four gates of some cells of one row, after their non-linearities."""
    enter = tl.load(gates + places, mask=inside, other=0.0).to(tl.float32) + bias[0]
    forget = tl.load(gates + cells + places, mask=inside, other=0.0).to(tl.float32) + bias[1]
    candidate = tl.load(gates + 2 * cells + places, mask=inside, other=0.0).to(tl.float32) + bias[2]
    leave = tl.load(gates + 3 * cells + places, mask=inside, other=0.0).to(tl.float32) + bias[3]
    return _sigmoid(enter), _sigmoid(forget), _tanh(candidate), _sigmoid(leave)


@triton.jit
def _biases(bias: tl.tensor, places: tl.tensor, cells: tl.tensor, inside: tl.tensor) -> Any:
    return (
        tl.load(bias + places, mask=inside, other=0.0),
        tl.load(bias + cells + places, mask=inside, other=0.0),
        tl.load(bias + 2 * cells + places, mask=inside, other=0.0),
        tl.load(bias + 3 * cells + places, mask=inside, other=0.0),
    )


@triton.jit(do_not_specialize=["step", "time", "batch"])
def _cell_forward(
    gates: tl.tensor,  # (N, T, B, 4C)
    bias: tl.tensor,  # (N, 4C)
    states: tl.tensor,  # (N, T + 1, B, C), reads the slot of this step and writes the next
    out: tl.tensor,  # (N, T, B, C)
    live: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, cells: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Gates and old cell -> new cell, and the hidden state before its projection. A program takes one row."""
    # Rows are the fastest axis of the grid: programs side by side share the biases in their cache.
    row, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = places < cells
    if KEEP:
        at = (n * time + step) * batch + row
        old = states + ((n * (time + 1) + step) * batch + row) * cells + places
        new = old + batch * cells
    else:  # a single slot, used again at every step
        at = n * batch + row
        old = states + at * cells + places
        new = old
    biases = _biases(bias + n * 4 * cells, places, cells, inside)
    enter, forget, candidate, leave = _gates(gates + at * 4 * cells, biases, places, cells, inside)
    before = tl.load(old, mask=inside, other=0.0)
    cell = tl.fma(forget, before, enter * candidate)  # a given rounding: backward computes it again
    if CLIP:
        cell = _clamp(cell, clip)
    hidden = leave * _tanh(cell)
    tl.store(out + at * cells + places, hidden.to(out.dtype.element_ty), mask=inside)
    if MASK:
        cell = tl.where(tl.load(live + row * time + step) != 0, cell, before)
    tl.store(new, cell, mask=inside)


@triton.jit(do_not_specialize=["step"])
def _cell_backward(
    gates: tl.tensor,  # (N, T, B, 4C)
    bias: tl.tensor,  # (N, 4C)
    states: tl.tensor,  # (N, T + 1, B, C)
    grad_out: tl.tensor,  # (N, B, C)
    grad_cell: tl.tensor,  # (N, B, C), in: of the new cell; out: of the old one
    grad_gates: tl.tensor,  # (N, T, B, 4C)
    sums: tl.tensor,  # (N, B / ROWS, 4C), each program adds up its rows' share of the bias gradient
    live: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, cells: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
) -> None:  # fmt: skip
    block, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = places < cells
    biases = _biases(bias + n * 4 * cells, places, cells, inside)
    sum_enter = tl.zeros((BLOCK,), tl.float32)
    sum_forget = tl.zeros((BLOCK,), tl.float32)
    sum_candidate = tl.zeros((BLOCK,), tl.float32)
    sum_leave = tl.zeros((BLOCK,), tl.float32)
    for row in range(block * ROWS, tl.minimum(batch, (block + 1) * ROWS)):
        here = ((n * time + step) * batch + row) * 4 * cells
        enter, forget, candidate, leave = _gates(gates + here, biases, places, cells, inside)
        old = states + ((n * (time + 1) + step) * batch + row) * cells + places
        before = tl.load(old, mask=inside, other=0.0)
        unclipped = tl.fma(forget, before, enter * candidate)
        squashed = _tanh(_clamp(unclipped, clip) if CLIP else unclipped)
        at = (n * batch + row) * cells + places
        d_out = tl.load(grad_out + at, mask=inside, other=0.0).to(tl.float32)
        d_new = tl.load(grad_cell + at, mask=inside, other=0.0)
        d_cell = d_out * leave * (1.0 - squashed * squashed)
        if MASK:
            alive = tl.load(live + row * time + step) != 0
            d_cell += tl.where(alive, d_new, 0.0)
        else:
            d_cell += d_new
        if CLIP:
            d_cell = tl.where((unclipped >= -clip) & (unclipped <= clip), d_cell, 0.0)
        d_old = d_cell * forget
        if MASK:
            d_old += tl.where(alive, 0.0, d_new)
        tl.store(grad_cell + at, d_old, mask=inside)
        d_enter = d_cell * candidate * enter * (1.0 - enter)
        d_forget = d_cell * before * forget * (1.0 - forget)
        d_candidate = d_cell * enter * (1.0 - candidate * candidate)
        d_leave = d_out * squashed * leave * (1.0 - leave)
        to = grad_gates + here + places
        tl.store(to, d_enter.to(grad_gates.dtype.element_ty), mask=inside)
        tl.store(to + cells, d_forget.to(grad_gates.dtype.element_ty), mask=inside)
        tl.store(to + 2 * cells, d_candidate.to(grad_gates.dtype.element_ty), mask=inside)
        tl.store(to + 3 * cells, d_leave.to(grad_gates.dtype.element_ty), mask=inside)
        sum_enter += d_enter
        sum_forget += d_forget
        sum_candidate += d_candidate
        sum_leave += d_leave
    to = sums + (n * tl.num_programs(0) + block) * 4 * cells + places
    tl.store(to, tl.load(to, mask=inside) + sum_enter, mask=inside)
    tl.store(to + cells, tl.load(to + cells, mask=inside) + sum_forget, mask=inside)
    tl.store(to + 2 * cells, tl.load(to + 2 * cells, mask=inside) + sum_candidate, mask=inside)
    tl.store(to + 3 * cells, tl.load(to + 3 * cells, mask=inside) + sum_leave, mask=inside)


@triton.jit(do_not_specialize=["step", "time", "batch"])
def _output_forward(
    raw: tl.tensor,  # (N, T, B, P)
    joint: tl.tensor,  # (N, T + 1, B, K): writes the hidden half of the next step's [x, h]
    outputs: tl.tensor,  # (N, B, T, P)
    live: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, size: tl.tensor, width: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Clip the projection; it is this step's output and the next one's hidden state."""
    row, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    slot = n * time + step if KEEP else n
    value = tl.load(raw + (slot * batch + row) * size + places, mask=inside, other=0.0)
    if CLIP:
        value = _clamp(value.to(tl.float32), clip).to(raw.dtype.element_ty)
    tl.store(outputs + ((n * batch + row) * time + step) * size + places, value, mask=inside)
    old = joint + ((n * (time + 1) + step) * batch + row) * width + (width - size) + places
    if MASK:
        value = tl.where(tl.load(live + row * time + step) != 0, value, tl.load(old, mask=inside, other=0.0))
    tl.store(old + batch * width, value, mask=inside)


@triton.jit(do_not_specialize=["step"])
def _output_backward(
    raw: tl.tensor,  # (N, T, B, P)
    grad_joint: tl.tensor,  # (N, T + 1, B, K): reads the hidden half of the step after this one
    grad_outputs: tl.tensor,  # (N, B, T, P)
    grad_raw: tl.tensor,  # (N, T, B, P)
    waiting: tl.tensor,  # (N, B, P): gradient that passes the steps at which a row stands still
    live: tl.tensor,  # (B, T)
    step: tl.tensor, time: tl.tensor, batch: tl.tensor, size: tl.tensor, width: tl.tensor, clip: tl.tensor,
    CLIP: tl.constexpr, MASK: tl.constexpr, OUTPUTS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    row, n = tl.program_id(0), tl.program_id(2).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = places < size
    later = grad_joint + ((n * (time + 1) + step + 1) * batch + row) * width + (width - size) + places
    grad = tl.load(later, mask=inside, other=0.0).to(tl.float32)
    if MASK:
        alive = tl.load(live + row * time + step) != 0
        wait = waiting + (n * batch + row) * size + places
        grad += tl.load(wait, mask=inside, other=0.0)
        tl.store(wait, tl.where(alive, 0.0, grad), mask=inside)
        grad = tl.where(alive, grad, 0.0)
    if OUTPUTS:
        here = grad_outputs + ((n * batch + row) * time + step) * size + places
        grad += tl.load(here, mask=inside, other=0.0).to(tl.float32)
    at = ((n * time + step) * batch + row) * size + places
    if CLIP:
        value = tl.load(raw + at, mask=inside, other=0.0).to(tl.float32)
        grad = tl.where((value >= -clip) & (value <= clip), grad, 0.0)
    tl.store(grad_raw + at, grad.to(grad_raw.dtype.element_ty), mask=inside)


@dataclass(frozen=True)
class _Tape:
    """What a run computed, one slot for each step (or, where no gradient is needed, a single slot used again)."""

    joint: Tensor  # (N, T + 1, B, K): [x_t, h_t-1]
    gates: Tensor  # (N, T, B, 4C): before bias and non-linearity
    states: Tensor  # (N, T + 1, B, C) float32: c_t-1
    squashed: Tensor  # (N, T, B, C): the hidden state before the projection
    raw: Tensor  # (N, T, B, P): the projection before its clip
    outputs: Tensor  # (N, B, T, P)


def fast_projected_lstm(
    inputs: Tensor,
    hidden: Tensor,
    cell: Tensor,
    mask: Tensor | None,
    weight_input: Tensor,
    weight_recurrent: Tensor,
    bias: Tensor,
    weight_projection: Tensor | None,
    cell_clip: float | None,
    projection_clip: float | None,
    counts: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """As `projected_lstm`, on a GPU. Computes in the type of `inputs`, or in autocast's.

    Without gradients it skips the rows beyond `counts` of each step.
    """
    directions, batch, time, _ = inputs.shape
    if batch == 0 or time == 0:
        return inputs.new_zeros(directions, batch, time, hidden.shape[-1]), hidden, cell
    dtype = compute_type(inputs)
    tensors = (inputs, hidden, cell, weight_input, weight_recurrent, bias, weight_projection)
    clips = cell_clip, projection_clip
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors):
        result: tuple[Tensor, Tensor, Tensor] = _ProjectedLstm.apply(
            inputs, hidden, cell, mask, weight_input, weight_recurrent, bias, weight_projection, clips, dtype
        )
        return result
    weights = _cast(weight_input, weight_recurrent, bias, weight_projection, dtype)
    with torch.cuda.device_of(inputs):
        tape = _forward(inputs, hidden, cell, mask, *weights, *clips, keep=False, counts=counts)
    return tape.outputs, *_last(tape, hidden, cell)


class _ProjectedLstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        hidden: Tensor,
        cell: Tensor,
        mask: Tensor | None,
        weight_input: Tensor,
        weight_recurrent: Tensor,
        bias: Tensor,
        weight_projection: Tensor | None,
        clips: tuple[float | None, float | None],
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights = _cast(weight_input, weight_recurrent, bias, weight_projection, dtype)
        with torch.cuda.device_of(inputs):
            tape = _forward(inputs, hidden, cell, mask, *weights, *clips, keep=True)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*weights, mask, tape.joint, tape.gates, tape.states, tape.squashed, tape.raw)
        ctx.clips = clips
        given = (inputs, hidden, cell, mask, weight_input, weight_recurrent, bias, weight_projection)
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in given]
        return tape.outputs, *_last(tape, hidden, cell)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        with torch.cuda.device_of(ctx.saved_tensors[0]):
            results = _backward(*ctx.saved_tensors, *ctx.clips, *grads)
        wanted = zip(results, ctx.dtypes, ctx.needs_input_grad, strict=False)
        cast = (grad.to(dtype) if grad is not None and needed else None for grad, dtype, needed in wanted)
        return (*cast, None, None)


def _cast(
    weight_input: Tensor, weight_recurrent: Tensor, bias: Tensor, projection: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Weights in the type of the computation, those of [x, h] as one (N, 4C, K)."""
    joint = torch.cat([weight_input.to(dtype), weight_recurrent.to(dtype)], 2)
    return joint, bias.float().contiguous(), None if projection is None else projection.to(dtype)


def _last(tape: _Tape, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    # Copies: a view would keep every step's buffer alive for as long as the state.
    last = tape.joint[:, -1, :, -hidden.shape[-1] :]
    return last.to(hidden.dtype, copy=True), tape.states[:, -1].to(cell.dtype, copy=True)


def _forward(
    inputs: Tensor,
    hidden: Tensor,
    cell: Tensor,
    mask: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    cell_clip: float | None,
    projection_clip: float | None,
    *,
    keep: bool,
    counts: Sequence[int] | None = None,
) -> _Tape:
    directions, batch, time, size_in = inputs.shape
    cells, size = weight.shape[1] // 4, hidden.shape[-1]
    slots = time if keep else 1
    joint = weight.new_empty(directions, time + 1, batch, size_in + size)
    gates = weight.new_empty(directions, slots, batch, 4 * cells)
    states = weight.new_empty(directions, time + 1 if keep else 1, batch, cells, dtype=torch.float32)
    squashed = weight.new_empty(directions, slots, batch, cells)
    raw = squashed if projection is None else weight.new_empty(directions, slots, batch, size)
    outputs = weight.new_empty(directions, batch, time, size)
    joint[:, :time, :, :size_in] = inputs.transpose(1, 2)
    joint[:, 0, :, size_in:] = hidden
    states[:, 0] = cell
    live = joint if mask is None else mask.contiguous().view(torch.uint8)  # without a mask the pointer is never read
    block, size_block = _block(cells, 1024), _block(size, 512)
    output_step = _output_forward[batch, -(-size // size_block), directions]
    clips = projection_clip is not None and projection is not None
    masked = mask is not None
    columns = weight.transpose(1, 2)
    # Views of all steps at once: taken one by one they would cost as much of the host's time as the launches.
    joints, all_gates, all_squashed, raws = (tensor.unbind(1) for tensor in (joint, gates, squashed, raw))
    for step in range(time):
        slot = step if keep else 0
        rows = batch if counts is None else min(batch, counts[step])
        torch.bmm(joints[step][:, :rows], columns, out=all_gates[slot][:, :rows])
        _cell_forward[rows, -(-cells // block), directions](
            gates, bias, states, squashed, live, step, time, batch, cells, cell_clip or 0.0,
            CLIP=cell_clip is not None, MASK=masked, KEEP=keep, BLOCK=block,
        )  # fmt: skip
        if projection is not None:
            torch.bmm(all_squashed[slot][:, :rows], projection.transpose(1, 2), out=raws[slot][:, :rows])
        output_step(  # for all rows: those that have ended carry their state on
            raw, joint, outputs, live, step, time, batch, size, size_in + size, projection_clip or 0.0,
            CLIP=clips, MASK=masked, KEEP=keep, BLOCK=size_block,
        )  # fmt: skip
    return _Tape(joint, gates, states, squashed, raw, outputs)


def _backward(
    weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    mask: Tensor | None,
    joint: Tensor,
    gates: Tensor,
    states: Tensor,
    squashed: Tensor,
    raw: Tensor,
    cell_clip: float | None,
    projection_clip: float | None,
    grad_outputs: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """Gradients of inputs, hidden, cell, mask (none), the weights of input and recurrence, bias and projection."""
    directions, time, batch, width = gates.shape
    cells, size = width // 4, raw.shape[-1]
    size_in = joint.shape[-1] - size
    grad_joint, grad_gates, grad_raw = torch.empty_like(joint), torch.empty_like(gates), torch.empty_like(raw)
    grad_joint[:, time, :, size_in:] = 0.0 if grad_hidden is None else grad_hidden
    grad_squashed = squashed.new_empty(directions, batch, cells)
    carry = torch.zeros_like(states[:, 0]) if grad_cell is None else grad_cell.to(torch.float32, copy=True).contiguous()
    blocks = -(-batch // ROWS)
    sums = bias.new_zeros(directions, blocks, width)
    waiting = carry if mask is None else carry.new_zeros(directions, batch, size)
    live = joint if mask is None else mask.contiguous().view(torch.uint8)
    outward = joint if grad_outputs is None else grad_outputs.contiguous()
    block, size_block = _block(cells, 512), _block(size, 512)
    output_step = _output_backward[batch, -(-size // size_block), directions]
    cell_step = _cell_backward[blocks, -(-cells // block), directions]
    clips = projection_clip is not None and projection is not None
    masked = mask is not None
    all_grad_joint, all_grad_gates, all_grad_raw = (one.unbind(1) for one in (grad_joint, grad_gates, grad_raw))
    for step in reversed(range(time)):
        output_step(
            raw, grad_joint, outward, grad_raw, waiting, live, step, time, batch, size, size_in + size,
            projection_clip or 0.0, CLIP=clips, MASK=masked, OUTPUTS=grad_outputs is not None, BLOCK=size_block,
        )  # fmt: skip
        if projection is None:
            grad_squashed.copy_(all_grad_raw[step])
        else:
            torch.bmm(all_grad_raw[step], projection, out=grad_squashed)
        cell_step(
            gates, bias, states, grad_squashed, carry, grad_gates, sums, live,
            step, time, batch, cells, cell_clip or 0.0,
            CLIP=cell_clip is not None, MASK=masked, BLOCK=block, ROWS=ROWS,
        )  # fmt: skip
        torch.bmm(all_grad_gates[step], weight, out=all_grad_joint[step])
    first = all_grad_joint[0][..., size_in:]
    flat = grad_gates.flatten(1, 2).transpose(1, 2)  # (N, 4C, TB)
    grad_weight = torch.bmm(flat, joint[:, :time].flatten(1, 2))  # (N, 4C, K)
    grad_projection = None
    if projection is not None:
        grad_projection = torch.bmm(grad_raw.flatten(1, 2).transpose(1, 2), squashed.flatten(1, 2))  # (N, P, C)
    return (
        grad_joint[:, :time, :, :size_in].transpose(1, 2), first if mask is None else first + waiting, carry, None,
        grad_weight[..., :size_in], grad_weight[..., size_in:], sums.sum(1), grad_projection,
    )  # fmt: skip


def _block(size: int, most: int) -> int:
    return min(most, int(triton.next_power_of_2(size)))


def probe(device: torch.device) -> None:
    """Compile and run one small kernel; raises where Triton does not work."""
    raw = torch.full((1, 1, 1, 16), 2.0, device=device)
    outputs, joint = torch.empty_like(raw), raw.new_empty(1, 2, 1, 16)
    with torch.cuda.device(device):
        _output_forward[1, 1, 1](
            raw, joint, outputs, raw, 0, 1, 1, 16, 16, 1.0, CLIP=True, MASK=False, KEEP=True, BLOCK=16
        )
    if not bool((outputs == 1.0).all()):
        raise RuntimeError("a trial kernel gave a wrong answer")
