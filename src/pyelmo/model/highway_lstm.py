"""The LSTM layer of the SRL network: a highway connection around it, and recurrent dropout (He et al. 2017).

    o, r, i, f = sigmoid(W x_t + U h_t-1 + b)        g = tanh(W_g x_t + U_g h_t-1 + b_g)
    c_t = f c_t-1 + i g                              h_t = z (r o tanh(c_t) + (1 - r) W_h x_t)

T time, B batch, D input, H hidden. The time axis comes first and is read forwards. z is the dropout mask, one for all
steps of a sequence. The weights of x are stacked in the order o, r, i, f, g, W_h: (6H, D); those of h and the biases
have the same order without the last: (5H, H), (5H,).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyelmo.kernels.choice import fast

GATES = 5


class HighwayLayer(nn.Module):
    """One layer. Its matrices are initialised orthonormal, and the bias of the forget gate with 1."""

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
        dropout_mask = None
        if self.training and self.dropout:
            chance = self.recurrent.new_full((inputs.shape[1], self.recurrent.shape[1]), 1 - self.dropout)
            dropout_mask = chance.bernoulli() / chance
        return highway_lstm(inputs, mask, self.input, self.recurrent, self.bias, dropout_mask)


def highway_lstm(
    inputs: Tensor, mask: Tensor, weight_input: Tensor, recurrent: Tensor, bias: Tensor, dropout_mask: Tensor | None
) -> Tensor:
    """(T, B, D), (T, B) -> (T, B, H); `dropout_mask` (B, H) is z.

    Where `mask` is false, the output and the state are 0, and the next real position starts from that state.
    """
    size = recurrent.shape[1]
    # The input's share of the gates has no recurrence: one product for all steps.
    joint = nn.functional.linear(inputs, weight_input, nn.functional.pad(bias, (0, size)))  # (T, B, 6H)
    # Closing the input and forget gates here sets the state of masked positions to 0 without any work in the loop.
    closed = torch.zeros_like(bias)
    closed[2 * size : 4 * size] = -torch.inf
    real = mask.unsqueeze(2)
    gates, carry = joint.split([GATES * size, size], -1)  # not two slices, each of which has a gradient of full size
    gates, carry = torch.where(real, gates, closed.to(joint.dtype)), carry.masked_fill(~real, 0.0)
    dtype = recurrent.dtype  # under autocast, too: a cell state in half precision loses small updates
    return fast(highway_recurrence, inputs)(gates.to(dtype), carry.to(dtype), recurrent, dropout_mask)


def highway_recurrence(gates: Tensor, carry: Tensor, recurrent: Tensor, dropout_mask: Tensor | None) -> Tensor:
    """The recurrent part: W x + b of the gates (T, B, 5H) and W_h x (T, B, H) -> (T, B, H).

    The gradient is autograd's. One written by hand made a training step of the SRL network 1.02 to 1.15 times faster on
    one core (docs/log.md, 2026-11-16), which is not worth 60 lines.
    """
    size = carry.shape[-1]
    hidden = cell = carry.new_zeros(carry.shape[1:])
    outputs = []
    with torch.autocast(gates.device.type, enabled=False):
        for step_gates, step_carry in zip(gates.unbind(0), carry.unbind(0), strict=True):
            summed = torch.addmm(step_gates, hidden, recurrent.T)  # (B, 5H)
            out_gate, transform_gate, in_gate, forget_gate = summed[:, : 4 * size].sigmoid().chunk(4, -1)
            cell = torch.addcmul(forget_gate * cell, in_gate, summed[:, 4 * size :].tanh())
            hidden = torch.lerp(step_carry, out_gate * cell.tanh(), transform_gate)
            if dropout_mask is not None:
                hidden = hidden * dropout_mask
            outputs.append(hidden)
    return torch.stack(outputs)
