"""The projected LSTM on a GPU: the equations of `model.lstm.projected_lstm`, forward and backward.

N directions, B batch, T time, D input, C cells, P output, K = D + P.

A forward step is one product [x, h] W for all directions, a kernel from gates to cell state, one product for the
projection and a kernel that clips it. The tape keeps what backward needs: the gates before their activation, the cell
states, the projection before its clip. The gradients of the weights have no recurrence: one product each, after the
loop.

Arithmetic is in float32. Values are stored in the compute type (bfloat16 under autocast), cell states in float32. The
gradient of a clipped value is zero outside the bounds, as in `torch.clamp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyelmo.kernels.choice import compute_type
from pyelmo.kernels.gpu.launch import StepKernel
from pyelmo.kernels.gpu.lstm_kernels import cell_backward, cell_forward, output_backward, output_forward

ROWS = 16  # rows of the batch in one program of the backward kernel, which sums their bias gradient


@dataclass(frozen=True)
class _Tape:
    """The values of a forward pass: a slot for each step, or one slot for all steps if no gradient is needed."""

    joint: Tensor  # (N, T + 1, B, K): [x_t, h_t-1]
    gates: Tensor  # (N, T, B, 4C): before bias and activation
    states: Tensor  # (N, T + 1, B, C) float32: c_t-1
    unprojected: Tensor  # (N, T, B, C): o tanh(c_t)
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
    """Compute `projected_lstm` on a GPU, in the dtype of `inputs` or of autocast.

    Without gradients, the rows beyond `counts` of each step are skipped.
    """
    directions, batch, time, _ = inputs.shape
    if batch == 0 or time == 0:
        return inputs.new_zeros(directions, batch, time, hidden.shape[-1]), hidden, cell
    dtype = compute_type(inputs)
    tensors = (inputs, hidden, cell, weight_input, weight_recurrent, bias, weight_projection)
    clips = cell_clip, projection_clip
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors):
        result: tuple[Tensor, Tensor, Tensor] = _ProjectedLstm.apply(  # type: ignore[no-untyped-call]
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
        ctx.save_for_backward(*weights, mask, tape.joint, tape.gates, tape.states, tape.unprojected, tape.raw)
        ctx.clips = clips
        arguments = (inputs, hidden, cell, mask, weight_input, weight_recurrent, bias, weight_projection)
        ctx.dtypes = [None if tensor is None else tensor.dtype for tensor in arguments]
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
    """Return the weights in the compute type, those of x and h joined to (N, 4C, K)."""
    joint = torch.cat([weight_input.to(dtype), weight_recurrent.to(dtype)], 2)
    return joint, bias.float().contiguous(), None if projection is None else projection.to(dtype)


def _last(tape: _Tape, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    # Copies: a view would keep the buffers of all steps in memory as long as the state.
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
    unprojected = weight.new_empty(directions, slots, batch, cells)
    raw = unprojected if projection is None else weight.new_empty(directions, slots, batch, size)
    outputs = weight.new_empty(directions, batch, time, size)
    joint[:, :time, :, :size_in] = inputs.transpose(1, 2)
    joint[:, 0, :, size_in:] = hidden
    states[:, 0] = cell
    mask_bytes = joint if mask is None else mask.contiguous().view(torch.uint8)  # without a mask it is never read
    block, size_block = _block(cells, 1024), _block(size, 512)
    clips = projection_clip is not None and projection is not None
    run_cells = StepKernel(
        cell_forward, (gates, bias, states, unprojected, mask_bytes), (time, batch, cells, cell_clip or 0.0),
        CLIP=cell_clip is not None, MASK=mask is not None, KEEP=keep, BLOCK=block,
    )  # fmt: skip
    run_outputs = StepKernel(
        output_forward, (raw, joint, outputs, mask_bytes), (time, batch, size, size_in + size, projection_clip or 0.0),
        CLIP=clips, MASK=mask is not None, KEEP=keep, BLOCK=size_block,
    )  # fmt: skip
    columns, projecting = weight.transpose(1, 2), None if projection is None else projection.transpose(1, 2)
    # Views of all steps at once: one by one, they would cost the host as much time as the launches.
    all_slots = [tensor.unbind(1) for tensor in (gates, unprojected, raw)]
    views: list[Tensor] = []
    for step, joint_step in enumerate(joint.unbind(1)[:-1]):
        rows = batch if counts is None else min(batch, counts[step])
        if keep or not views or views[0].shape[1] != rows:
            views = [each[step if keep else 0][:, :rows] for each in all_slots]
        step_gates, step_unprojected, step_raw = views
        torch.bmm(joint_step[:, :rows], columns, out=step_gates)
        run_cells((rows, -(-cells // block), directions), step)
        if projecting is not None:
            torch.bmm(step_unprojected, projecting, out=step_raw)
        # For all rows: those after their end copy their state.
        run_outputs((batch, -(-size // size_block), directions), step)
    return _Tape(joint, gates, states, unprojected, raw, outputs)


def _backward(
    weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    mask: Tensor | None,
    joint: Tensor,
    gates: Tensor,
    states: Tensor,
    unprojected: Tensor,
    raw: Tensor,
    cell_clip: float | None,
    projection_clip: float | None,
    grad_outputs: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of inputs, hidden, cell, mask (None), input and recurrent weights, bias and projection."""
    directions, time, batch, width = gates.shape
    cells, size = width // 4, raw.shape[-1]
    size_in = joint.shape[-1] - size
    grad_joint, grad_gates, grad_raw = torch.empty_like(joint), torch.empty_like(gates), torch.empty_like(raw)
    grad_joint[:, time, :, size_in:] = 0.0 if grad_hidden is None else grad_hidden
    grad_unprojected = unprojected.new_empty(directions, batch, cells)
    d_cell = (
        torch.zeros_like(states[:, 0]) if grad_cell is None else grad_cell.to(torch.float32, copy=True).contiguous()
    )
    blocks = -(-batch // ROWS)
    sums = bias.new_zeros(directions, blocks, width)
    passed_on = d_cell if mask is None else d_cell.new_zeros(directions, batch, size)
    mask_bytes = joint if mask is None else mask.contiguous().view(torch.uint8)
    d_outputs = joint if grad_outputs is None else grad_outputs.contiguous()
    block, size_block = _block(cells, 512), _block(size, 512)
    output_step = output_backward[batch, -(-size // size_block), directions]
    cell_step = cell_backward[blocks, -(-cells // block), directions]
    clips = projection_clip is not None and projection is not None
    masked = mask is not None
    all_grad_joint, all_grad_gates, all_grad_raw = (steps.unbind(1) for steps in (grad_joint, grad_gates, grad_raw))
    for step in reversed(range(time)):
        output_step(
            raw, grad_joint, d_outputs, grad_raw, passed_on, mask_bytes, step, time, batch, size, size_in + size,
            projection_clip or 0.0, CLIP=clips, MASK=masked, OUTPUTS=grad_outputs is not None, BLOCK=size_block,
        )  # fmt: skip
        if projection is None:
            grad_unprojected.copy_(all_grad_raw[step])
        else:
            torch.bmm(all_grad_raw[step], projection, out=grad_unprojected)
        cell_step(
            gates, bias, states, grad_unprojected, d_cell, grad_gates, sums, mask_bytes,
            step, time, batch, cells, cell_clip or 0.0,
            CLIP=cell_clip is not None, MASK=masked, BLOCK=block, ROWS=ROWS,
        )  # fmt: skip
        torch.bmm(all_grad_gates[step], weight, out=all_grad_joint[step])
    d_hidden = all_grad_joint[0][..., size_in:]
    grad_weight = _over_steps(grad_gates, joint[:, :time])  # (N, 4C, K)
    grad_projection = None if projection is None else _over_steps(grad_raw, unprojected)  # (N, P, C)
    return (
        grad_joint[:, :time, :, :size_in].transpose(1, 2), d_hidden if mask is None else d_hidden + passed_on, d_cell,
        None, grad_weight[..., :size_in], grad_weight[..., size_in:], sums.sum(1), grad_projection,
    )  # fmt: skip


def _over_steps(gradients: Tensor, inputs: Tensor) -> Tensor:  # (N, T, B, X), (N, T, B, Y) -> (N, X, Y)
    """Return the gradient of a weight from those of its products, summed over steps and batch."""
    return torch.bmm(gradients.flatten(1, 2).transpose(1, 2), inputs.flatten(1, 2))


def _block(size: int, most: int) -> int:
    return min(most, int(triton.next_power_of_2(size)))


def probe(device: torch.device) -> None:
    """Compile and run one small kernel; raises an error if Triton does not work."""
    raw = torch.full((1, 1, 1, 16), 2.0, device=device)
    outputs, joint = torch.empty_like(raw), raw.new_empty(1, 2, 1, 16)
    with torch.cuda.device(device):
        output_forward[1, 1, 1](
            raw, joint, outputs, raw, 0, 1, 1, 16, 16, 1.0, CLIP=True, MASK=False, KEEP=True, BLOCK=16
        )
    if not bool((outputs == 1.0).all()):
        raise RuntimeError("a test kernel computed a wrong result")
