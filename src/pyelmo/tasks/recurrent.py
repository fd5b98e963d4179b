"""What the task networks share: bidirectional LSTMs and GRUs over texts of any length, dropout of whole columns.

B batch, T time, D input, H hidden, N words of all texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


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
    """The same of torch's GRU."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor, packing: Packing | None = None) -> Tensor:
        return _over_words(self.gru, inputs, mask, packing or mask_packing(mask))


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
