"""What the task networks share: bidirectional LSTMs and GRUs over texts of any length, dropout of whole columns.

B batch, T time, D input, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLstm(nn.Module):
    """One layer of torch's LSTM in both directions, each of which begins at its own end of a sentence."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), (B, T) -> (B, T, 2H), 0 where `mask` is false."""
        return _over_words(self.lstm, inputs, mask, word_counts(mask))


class BiGru(nn.Module):
    """The same of torch's GRU."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor, counts: Tensor | None = None) -> Tensor:
        """(B, T, D), (B, T) -> (B, T, 2H), 0 where `mask` is false.

        Layers over the same texts may share their `word_counts`: counting anew waits until a GPU has done all before.
        """
        return _over_words(self.gru, inputs, mask, word_counts(mask) if counts is None else counts)


def word_counts(mask: Tensor) -> Tensor:  # (B, T) -> (B,) on the CPU
    """How many words each text has, one at least: torch packs no text without words."""
    return mask.sum(1).clamp(min=1).cpu()


def _over_words(layer: nn.LSTM | nn.GRU, inputs: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=inputs.shape[1])
    return outputs.masked_fill(~mask.unsqueeze(2), 0.0)


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
