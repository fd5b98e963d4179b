"""The biattentive classification network of McCann et al. (2017) for one text.

    word vectors -> feed-forward layer -> biLSTM -> X
    X attends to itself -> C
    [X, X - C, X * C] -> biLSTM [and ELMo's output mix] -> max, mean, min and self-attentive pooling
    -> three maxout layers -> scores of classes

The paper's network reads two texts. With one text, its two attentions, integrators and poolings are one of each. The
paper normalises over batches; this network uses layer normalisation (Ba et al. 2016), because batches are sorted by
length here, and the statistics of short texts differ from those of long ones.

B batch, T positions, D input size, E size of ELMo's output mix, H hidden size, S = 2H + E, K classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiLstm, Packing, VariationalDropout, mask_packing

MAXOUT = 4  # linear functions of a maxout unit


class BcnNetwork(nn.Module):
    """The layers that score the classes of texts; `extra` is the size E, or 0 without ELMo at the output."""

    def __init__(
        self, inputs: int, classes: int, *, hidden: int = 300, dropout: float = 0.2, input_dropout: float = 0.5,
        extra: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        width = 2 * hidden
        self.input_dropout = VariationalDropout(input_dropout)
        self.feed_forward = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(dropout))
        self.encoder = BiLstm(hidden, hidden)
        self.integrator = BiLstm(3 * width, hidden)
        self.dropout = nn.Dropout(dropout)
        pooled = width + extra
        self.attention = nn.Linear(pooled, 1, bias=False)  # a bias would not change the softmax
        self.output = nn.Sequential(
            Maxout(4 * pooled, 2 * width, dropout),
            Maxout(2 * width, width, dropout),
            Maxout(width, classes, dropout),
        )

    def forward(
        self, inputs: Tensor, mask: Tensor, extra: Tensor | None = None, packing: Packing | None = None
    ) -> Tensor:
        """Return scores: (B, T, D), mask (B, T), optionally (B, T, E) -> (B, K). An empty text is a zero vector."""
        words = mask
        mask = torch.cat([words[:, :1] | ~words.any(1, keepdim=True), words[:, 1:]], 1)
        packing = packing or mask_packing(mask)
        inputs = inputs.masked_fill(~words.unsqueeze(2), 0.0)
        encoded = self.encoder(self.feed_forward(self.input_dropout(inputs)), mask, packing)  # (B, T, 2H)
        attended = _self_attention(encoded, mask)  # (B, T, 2H)
        joined = torch.cat([encoded, encoded - attended, encoded * attended], 2)  # (B, T, 6H)
        states = self.integrator(joined, mask, packing)  # (B, T, 2H)
        if extra is not None:
            extra = self.input_dropout(extra.masked_fill(~words.unsqueeze(2), 0.0))
            states = torch.cat([states, extra], 2)  # (B, T, S)
        weights = self.attention(self.dropout(states)).squeeze(2)  # (B, T)
        scores: Tensor = self.output(_pool(states, weights, mask))
        return scores


def _self_attention(encoded: Tensor, mask: Tensor) -> Tensor:  # (B, T, 2H) -> (B, T, 2H)
    """Return for each word the mean of all words, weighted by the softmax of their dot products with it."""
    products = encoded @ encoded.transpose(1, 2)  # (B, T, T)
    return products.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2) @ encoded


def _pool(states: Tensor, weights: Tensor, mask: Tensor) -> Tensor:  # (B, T, S), (B, T), (B, T) -> (B, 4S)
    """Return maximum, mean, minimum and weighted mean over the words. The states of padding must be 0."""
    padding = ~mask.unsqueeze(2)
    attention = weights.masked_fill(~mask, -torch.inf).softmax(1).unsqueeze(2)  # (B, T, 1)
    return torch.cat(
        [
            states.masked_fill(padding, -torch.inf).amax(1),
            states.sum(1) / mask.sum(1, keepdim=True),
            states.masked_fill(padding, torch.inf).amin(1),
            (attention * states).sum(1),
        ],
        1,
    )


class Maxout(nn.Module):
    """Layer normalisation, dropout, and the maximum of several linear functions (Goodfellow et al. 2013)."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(inputs)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(inputs, MAXOUT * outputs)

    def forward(self, inputs: Tensor) -> Tensor:  # (B, inputs) -> (B, outputs)
        pieces: Tensor = self.linear(self.dropout(self.norm(inputs)))
        return pieces.view(len(inputs), MAXOUT, -1).amax(1)
