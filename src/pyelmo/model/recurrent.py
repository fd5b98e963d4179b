"""What the task networks share: bidirectional LSTMs and GRUs over texts of any length, dropout of whole columns.

B batch, T time, D input, H hidden, N words of all texts, S layers side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad
from torch.nn.utils.rnn import PackedSequence

from pyelmo.kernels import fast

Recurrence = Callable[[Tensor, Tensor, Tensor], Tensor]  # `gru_recurrence`, or one that computes the same


class BiLstm(nn.Module):
    """One layer of torch's LSTM in both directions, each of which begins at its own end of a sentence."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor, packing: Packing | None = None) -> Tensor:
        """(B, T, D), (B, T) -> (B, T, 2H), 0 where `mask` is false.

        Layers over the same texts share a `packing`: to make it from the mask is to wait until a GPU has done all else.
        """
        return _over_words(self.lstm, inputs, mask, packing or mask_packing(mask))


class BiGru(nn.Module):
    """The same of torch's GRU, or of the kernel that takes its place on a GPU."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor, packing: Packing | None = None) -> Tensor:
        recurrence = fast(gru_recurrence, inputs)
        if recurrence is gru_recurrence:  # whose loop torch's layer is faster than
            return _over_words(self.gru, inputs, mask, packing or mask_packing(mask))
        return self.both_ways(inputs, mask, recurrence)

    def both_ways(self, inputs: Tensor, mask: Tensor, recurrence: Recurrence) -> Tensor:
        """The same as torch's layer by a recurrence over all steps, what is after a sentence's end too."""
        parts, size = dict(self.gru.named_parameters()), self.gru.hidden_size
        lengths, steps = mask.sum(1, keepdim=True), torch.arange(mask.shape[1], device=mask.device)
        turned = torch.where(steps < lengths, lengths - 1 - steps, steps).unsqueeze(2)  # (B, T, 1): from the end
        ways = []
        for way in ("l0", "l0_reverse"):
            # All that is added to gates is added here, but for what the reset gate shuts.
            bias = parts[f"bias_ih_{way}"] + pad(parts[f"bias_hh_{way}"][: 2 * size], (0, size))
            ways.append(linear(inputs, parts[f"weight_ih_{way}"], bias))  # (B, T, 3H)
        gates = torch.stack([ways[0], ways[1].take_along_dim(turned, 1)]).transpose(1, 2)
        recurrent, biases = (
            torch.stack([parts[f"{name}_l0"], parts[f"{name}_l0_reverse"]]) for name in ("weight_hh", "bias_hh")
        )
        there, back = recurrence(gates, recurrent, biases[:, 2 * size :]).transpose(1, 2)  # (B, T, H) each
        found = torch.cat([there, back.take_along_dim(turned, 1)], 2)
        return found.masked_fill(~mask.unsqueeze(2), 0.0)


def gru_recurrence(gates: Tensor, recurrent: Tensor, bias: Tensor) -> Tensor:
    """What GRUs make of what words bring to their gates: (S, T, B, 3H), (S, 3H, H), (S, H) -> (S, T, B, H).

    S layers side by side; gates are reset, update and new, in torch's order; `bias` is added to what reset is applied
    to.
    """
    size = bias.shape[1]
    hidden = gates.new_zeros(*gates[:, 0].shape[:2], size)  # (S, B, H)
    outputs = []
    for words in gates.unbind(1):
        known = torch.cat([words[..., : 2 * size], bias.unsqueeze(1).expand_as(hidden)], 2)
        summed = torch.baddbmm(known, hidden, recurrent.transpose(1, 2))
        reset, update = summed[..., : 2 * size].sigmoid().chunk(2, 2)
        new = (words[..., 2 * size :] + reset * summed[..., 2 * size :]).tanh()
        hidden = (1 - update) * new + update * hidden
        outputs.append(hidden)
    return torch.stack(outputs, 1)


@dataclass(frozen=True)
class Packing:
    """The words of texts in the order in which torch's layers read them: all first ones, the longest text's first, ...

    A text without words counts as one word long: torch's layers take none without.
    """

    places: Tensor  # (N,) of B * T
    sizes: Tensor  # (T,) texts that are so long, on the CPU
    whole: bool  # whether all texts have words


def pack(lengths: Sequence[int], width: int, device: torch.device) -> Packing:
    """Of texts so long, in a tensor (B, `width`, ...). Torch's own packing copies step by step, and sorts each time."""
    counts, order = torch.tensor(lengths).clamp(min=1).sort(descending=True)
    steps = torch.arange(int(counts[0])).unsqueeze(1)
    live = steps < counts  # (T, B)
    places = (order * width + steps)[live].to(device, non_blocking=True)
    return Packing(places, live.sum(1), min(lengths) > 0)


def mask_packing(mask: Tensor) -> Packing:  # (B, T)
    return pack(mask.sum(1).tolist(), mask.shape[1], mask.device)


def _over_words(layer: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor, packing: Packing) -> Tensor:
    words = inputs.flatten(0, 1).index_select(0, packing.places)  # (N, D)
    outputs: Tensor = layer(PackedSequence(words, packing.sizes))[0].data  # (N, 2H)
    found = outputs.new_zeros(mask.numel(), outputs.shape[1]).index_copy_(0, packing.places, outputs)
    found = found.view(*mask.shape, -1)
    return found if packing.whole else found.masked_fill(~mask.unsqueeze(2), 0.0)


class VariationalDropout(nn.Module):
    """Drops a column of a sentence (B, T, D) at every word or at none (Gal & Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return inputs
        chance = torch.full_like(inputs[:, :1], 1 - self.rate)
        return inputs * (chance.bernoulli() / chance)
