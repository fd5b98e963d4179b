"""An LSTM layer with a highway around it, whose hidden states are dropped by one mask a sequence (He et al. 2017).

    o, r, i, f = sigmoid(W x_t + U h_t-1 + b)        g = tanh(W_g x_t + U_g h_t-1 + b_g)
    c_t = f c_t-1 + i g                              h_t = z (r o tanh(c_t) + (1 - r) W_h x_t)

T time, B batch, D input, H hidden. Time comes first, and is read forwards. The matrices of x stand below each other in
the order o, r, i, f, g, W_h: (6H, D); those of h and the biases without the last: (5H, H), (5H,).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pyelmo.kernels import fast

GATES = 5


def highway_lstm(
    inputs: Tensor, mask: Tensor, weight_input: Tensor, recurrent: Tensor, bias: Tensor, keep: Tensor | None
) -> Tensor:
    """The plain reference: (T, B, D), (T, B) -> (T, B, H), one step after another, as the equations say.

    Where `mask` is false the output is 0 and so is the state, from which the next word begins. `keep` (B, H) is z.
    """
    size = recurrent.shape[1]
    hidden = cell = inputs.new_zeros(inputs.shape[1], size)
    outputs = []
    for step, live in zip(inputs, mask.unsqueeze(2), strict=True):
        gates, straight = (step @ weight_input.T).split([GATES * size, size], -1)
        leave, through, enter, forget, candidate = (gates + hidden @ recurrent.T + bias).chunk(GATES, -1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        through = torch.sigmoid(through)
        hidden = through * torch.sigmoid(leave) * torch.tanh(cell) + (1 - through) * straight
        if keep is not None:
            hidden = hidden * keep
        hidden, cell = hidden * live, cell * live
        outputs.append(hidden)
    return torch.stack(outputs)


def fast_highway_lstm(
    inputs: Tensor, mask: Tensor, weight_input: Tensor, recurrent: Tensor, bias: Tensor, keep: Tensor | None
) -> Tensor:
    """As `highway_lstm`: what has no recurrence is one product for all steps; a GPU takes the rest in one launch."""
    size = recurrent.shape[1]
    joint = nn.functional.linear(inputs, weight_input, nn.functional.pad(bias, (0, size)))  # (T, B, 6H)
    # Where there is no word nothing enters the cell and nothing stays: its gates are shut, at no cost to any step.
    shut = torch.zeros_like(bias)
    shut[2 * size : 4 * size] = -torch.inf
    live = mask.unsqueeze(2)
    gates, carry = joint.split([GATES * size, size], -1)  # as one: two slices would each have a gradient of full size
    gates, carry = torch.where(live, gates, shut.to(joint.dtype)), carry.masked_fill(~live, 0.0)
    dtype = recurrent.dtype  # under autocast too: a cell in half precision forgets
    return fast(highway_recurrence, inputs)(gates.to(dtype), carry.to(dtype), recurrent, keep)


def highway_recurrence(gates: Tensor, carry: Tensor, recurrent: Tensor, keep: Tensor | None) -> Tensor:
    """What the words bring, (T, B, 5H) and (T, B, H) -> (T, B, H): all that has a recurrence."""
    with torch.autocast(gates.device.type, enabled=False):
        outputs: Tensor = _HighwayLstm.apply(gates, carry, recurrent, keep)  # type: ignore[no-untyped-call]
    return outputs


class _HighwayLstm(torch.autograd.Function):
    """Step by step, with backward written out."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, carry: Tensor, recurrent: Tensor, keep: Tensor | None) -> Tensor:
        size = carry.shape[-1]
        active = torch.empty(gates.shape, dtype=gates.dtype, device=gates.device)  # after their non-linearities
        cells, outputs = torch.empty_like(active[..., :size]), torch.empty_like(active[..., :size])
        columns = recurrent.T
        hidden = cell = carry.new_zeros(carry.shape[1:])
        # Views of all steps at once: taken one by one they would cost as much of the host's time as the steps.
        sigmoids, candidates = active[..., : 4 * size].unbind(0), active[..., 4 * size :].unbind(0)
        leaves, throughs, enters, forgets, _ = (gate.unbind(0) for gate in active.chunk(GATES, -1))
        steps = zip(gates.unbind(0), active.unbind(0), carry.unbind(0), cells.unbind(0), outputs.unbind(0), strict=True)
        for step, (gates_in, gates_out, straight, new_cell, new_hidden) in enumerate(steps):
            torch.addmm(gates_in, hidden, columns, out=gates_out)
            sigmoids[step].sigmoid_()
            candidates[step].tanh_()
            torch.mul(forgets[step], cell, out=new_cell).addcmul_(enters[step], candidates[step])
            squashed = torch.tanh(new_cell).mul_(leaves[step])
            torch.lerp(straight, squashed, throughs[step], out=new_hidden)
            if keep is not None:
                new_hidden.mul_(keep)
            hidden, cell = new_hidden, new_cell
        ctx.save_for_backward(carry, recurrent, keep, active, cells, outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        carry, recurrent, keep, active, cells, outputs = ctx.saved_tensors
        time, batch, size = carry.shape
        leave, through, enter, forget, candidate = active.chunk(GATES, -1)
        # By how much each gate's input changes with the hidden state or the cell: for all steps at once.
        squashed = cells.tanh()
        kept = through if keep is None else through * keep
        before = torch.cat([torch.zeros_like(cells[:1]), cells[:-1]])
        by_hidden = torch.stack(
            [kept * squashed * leave * (1 - leave), kept * (1 - through) * (leave * squashed - carry)], 2
        )  # (T, B, 2, H)
        by_cell = torch.stack(
            [enter * (1 - enter) * candidate, forget * (1 - forget) * before, enter * (1 - candidate**2)], 2
        )  # (T, B, 3, H)
        cell_by_hidden = kept * leave * (1 - squashed**2)  # (T, B, H)
        grad_gates = torch.empty(time, batch, GATES, size, dtype=carry.dtype, device=carry.device)
        grad_hidden = torch.empty_like(cells)
        grad_cell = torch.zeros_like(cells[0])  # (B, H)
        flat = grad_gates.flatten(2).unbind(0)
        outer, inner = grad_gates[:, :, :2].unbind(0), grad_gates[:, :, 2:].unbind(0)  # o and r; i, f and g
        grads, outward, forgets = grad_hidden.unbind(0), grad_outputs.unbind(0), forget.unbind(0)
        factors = list(zip(by_hidden.unbind(0), cell_by_hidden.unbind(0), by_cell.unbind(0), strict=True))
        grads[-1].copy_(outward[-1])
        for step in reversed(range(time)):
            if step + 1 < time:
                torch.addmm(outward[step], flat[step + 1], recurrent, out=grads[step])
            of_outer, of_cell, of_inner = factors[step]
            torch.mul(grads[step].unsqueeze(1), of_outer, out=outer[step])
            grad_cell.addcmul_(grads[step], of_cell)
            torch.mul(grad_cell.unsqueeze(1), of_inner, out=inner[step])
            grad_cell.mul_(forgets[step])
        grad_carry = grad_hidden * ((1 - through) if keep is None else (1 - through) * keep)
        all_gates = grad_gates.flatten(2)
        # The weights have no recurrence: one product. The first step's hidden state was zero.
        grad_recurrent = all_gates[1:].flatten(0, 1).T @ outputs[:-1].flatten(0, 1)
        return all_gates, grad_carry, grad_recurrent, None


class HighwayLayer(nn.Module):
    """One layer; matrices begin orthonormal and the forget gate open."""

    def __init__(self, inputs: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.input = nn.Parameter(torch.empty((GATES + 1) * hidden, inputs))
        self.recurrent = nn.Parameter(torch.empty(GATES * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(GATES * hidden))
        with torch.no_grad():
            for block in (*self.input.chunk(GATES + 1), *self.recurrent.chunk(GATES)):
                nn.init.orthogonal_(block)
            self.bias[3 * hidden : 4 * hidden] = 1.0

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """(T, B, D), (T, B) -> (T, B, H), 0 where `mask` is false."""
        keep = None
        if self.training and self.dropout:
            chance = self.recurrent.new_full((inputs.shape[1], self.recurrent.shape[1]), 1 - self.dropout)
            keep = chance.bernoulli() / chance
        return fast_highway_lstm(inputs, mask, self.input, self.recurrent, self.bias, keep)
