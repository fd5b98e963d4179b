"""Recurrent layers that the task networks share: bidirectional LSTMs and GRUs over padded batches, and dropout.

B batch, T time, D input, H hidden, N tokens of all sequences, S recurrences that run together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad
from torch.nn.utils.rnn import PackedSequence

from pyelmo.kernels.choice import fast

Recurrence = Callable[[Tensor, Tensor, Tensor], Tensor]  # the signature of `gru_recurrence`


class BiLstm(nn.Module):
    """One bidirectional layer of torch's LSTM; the backward direction starts at the last token of each sequence."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor, packing: Packing | None = None) -> Tensor:
        """(B, T, D), (B, T) -> (B, T, 2H), 0 where `mask` is false.

        Layers over the same sequences should share a `packing`: computing one from the mask waits for the GPU.
        """
        return _run_packed(self.lstm, inputs, mask, packing or mask_packing(mask))


class BiGru(nn.Module):
    """One bidirectional layer of torch's GRU, or of the Triton kernel on a GPU that can run it."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor, packing: Packing | None = None) -> Tensor:
        recurrence = fast(gru_recurrence, inputs)
        if recurrence is gru_recurrence:  # torch's layer is faster than a Python loop
            return _run_packed(self.gru, inputs, mask, packing or mask_packing(mask))
        return self.run_recurrence(inputs, mask, recurrence)

    def run_recurrence(self, inputs: Tensor, mask: Tensor, recurrence: Recurrence) -> Tensor:
        """Compute what torch's layer computes with a recurrence over all time steps, padding included."""
        weights, size = dict(self.gru.named_parameters()), self.gru.hidden_size
        lengths, steps = mask.sum(1, keepdim=True), torch.arange(mask.shape[1], device=mask.device)
        reverse = torch.where(steps < lengths, lengths - 1 - steps, steps).unsqueeze(2)  # (B, T, 1)
        from_inputs = []
        for direction in ("l0", "l0_reverse"):
            # All biases are added here, except the one that the reset gate multiplies.
            bias = weights[f"bias_ih_{direction}"] + pad(weights[f"bias_hh_{direction}"][: 2 * size], (0, size))
            from_inputs.append(linear(inputs, weights[f"weight_ih_{direction}"], bias))  # (B, T, 3H)
        gates = torch.stack([from_inputs[0], from_inputs[1].take_along_dim(reverse, 1)]).transpose(1, 2)
        recurrent, biases = (
            torch.stack([weights[f"{name}_l0"], weights[f"{name}_l0_reverse"]]) for name in ("weight_hh", "bias_hh")
        )
        forward, backward = recurrence(gates, recurrent, biases[:, 2 * size :]).transpose(1, 2)  # (B, T, H) each
        outputs = torch.cat([forward, backward.take_along_dim(reverse, 1)], 2)
        return outputs.masked_fill(~mask.unsqueeze(2), 0.0)


def gru_recurrence(gates: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """The recurrent part of S GRUs: W x + b of the gates, (S, T, B, 3H), (S, 3H, H), (S, H) -> (S, T, B, H).

    The gates are reset, update and new, in torch's order; `bias` is the one inside the product with the reset gate.
    """
    size = bias.shape[1]
    hidden = gates.new_zeros(*gates[:, 0].shape[:2], size)  # (S, B, H)
    outputs = []
    for from_input in gates.unbind(1):
        start = torch.cat([from_input[..., : 2 * size], bias.unsqueeze(1).expand_as(hidden)], 2)
        summed = torch.baddbmm(start, hidden, recurrent.transpose(1, 2))
        reset, update = summed[..., : 2 * size].sigmoid().chunk(2, 2)
        new = (from_input[..., 2 * size :] + reset * summed[..., 2 * size :]).tanh()
        hidden = (1 - update) * new + update * hidden
        outputs.append(hidden)
    return torch.stack(outputs, 1)


@dataclass(frozen=True)
class Packing:
    """The order of tokens in torch's `PackedSequence`: all first tokens, longest sequence first, then all second ones.

    An empty sequence counts as one token, because torch's layers refuse empty ones.
    """

    positions: Tensor  # (N,) in the flat batch B * T
    sizes: Tensor  # (T,) number of sequences that have a token at each time step, on the CPU
    whole: bool  # whether no sequence is empty


def pack(lengths: Sequence[int], width: int, device: torch.device) -> Packing:
    """Return the packing of sequences in a tensor (B, `width`, ...).

    torch's own packing copies step by step, and sorts for each layer again.
    """
    counts, order = torch.tensor(lengths).clamp(min=1).sort(descending=True)
    steps = torch.arange(int(counts[0])).unsqueeze(1)
    exists = steps < counts  # (T, B)
    positions = (order * width + steps)[exists].to(device, non_blocking=True)
    return Packing(positions, exists.sum(1), min(lengths) > 0)


def mask_packing(mask: Tensor) -> Packing:  # (B, T)
    return pack(mask.sum(1).tolist(), mask.shape[1], mask.device)


def _run_packed(layer: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor, packing: Packing) -> Tensor:
    tokens = inputs.flatten(0, 1).index_select(0, packing.positions)  # (N, D)
    outputs: Tensor = layer(PackedSequence(tokens, packing.sizes))[0].data  # (N, 2H)
    padded = outputs.new_zeros(mask.numel(), outputs.shape[1]).index_copy_(0, packing.positions, outputs)
    padded = padded.view(*mask.shape, -1)
    return padded if packing.whole else padded.masked_fill(~mask.unsqueeze(2), 0.0)


class VariationalDropout(nn.Module):
    """Dropout with one mask for all time steps of a sequence (B, T, D) (Gal & Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return inputs
        chance = torch.full_like(inputs[:, :1], 1 - self.rate)
        return inputs * (chance.bernoulli() / chance)
