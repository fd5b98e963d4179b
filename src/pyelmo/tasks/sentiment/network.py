"""The biattentive classification network of McCann et al. (2017), for one text: vectors of words -> scores of classes.

    inputs -> feed-forward -> biLSTM -> X     X attends to itself -> C     [X, X - C, X * C] -> biLSTM -> pooling
    max, mean, min and self-attentive pooling -> three maxout layers, normalised -> scores

B batch, T time, D input, E second input, H hidden, K classes. With the same text on both sides, the paper's two
attentions, integrators and pools are one each. Where they normalise by batches we do by texts (Ba et al. 2016): our
batches are of like length, and means of short texts are not those of long ones.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiLstm, Packing, VariationalDropout, mask_packing

MAXOUT = 4  # linear pieces of a maxout unit


class BcnNetwork(nn.Module):
    """`extra` is the size of the vectors that join what the integrator gives."""

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
        self.attention = nn.Linear(pooled, 1, bias=False)  # it would move all words alike
        self.output = nn.Sequential(
            Maxout(4 * pooled, 2 * width, dropout),
            Maxout(2 * width, width, dropout),
            Maxout(width, classes, dropout),
        )

    def forward(
        self, inputs: Tensor, mask: Tensor, extra: Tensor | None = None, packing: Packing | None = None
    ) -> Tensor:
        """(B, T, D), (B, T), perhaps (B, T, E) -> (B, K). A text without words is one word whose vectors are 0."""
        words = mask
        mask = torch.cat([words[:, :1] | ~words.any(1, keepdim=True), words[:, 1:]], 1)
        packing = packing or mask_packing(mask)
        inputs = inputs.masked_fill(~words.unsqueeze(2), 0.0)
        encoded = self.encoder(self.feed_forward(self.input_dropout(inputs)), mask, packing)  # (B, T, 2H)
        attended = _self_attention(encoded, mask)
        joined = torch.cat([encoded, encoded - attended, encoded * attended], 2)
        states = self.integrator(joined, mask, packing)
        if extra is not None:
            states = torch.cat([states, self.input_dropout(extra.masked_fill(~words.unsqueeze(2), 0.0))], 2)
        weights = self.attention(self.dropout(states)).squeeze(2)
        scores: Tensor = self.output(_pool(states, weights, mask))
        return scores


def _self_attention(encoded: Tensor, mask: Tensor) -> Tensor:
    """Each word's summary of all words, by their dot products with it: (B, T, 2H) -> (B, T, 2H)."""
    products = encoded @ encoded.transpose(1, 2)  # (B, T, T)
    return products.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2) @ encoded


def _pool(states: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    """Maximum, mean, minimum and the sum by `weights` (B, T), over the words: (B, T, S) -> (B, 4S). Padding is 0."""
    padding = ~mask.unsqueeze(2)
    attention = weights.masked_fill(~mask, -torch.inf).softmax(1).unsqueeze(2)
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
    """Layer normalisation, dropout, and the largest of several linear functions (Goodfellow et al. 2013)."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(inputs)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(inputs, MAXOUT * outputs)

    def forward(self, inputs: Tensor) -> Tensor:  # (B, inputs) -> (B, outputs)
        pieces: Tensor = self.linear(self.dropout(self.norm(inputs)))
        return pieces.view(len(inputs), MAXOUT, -1).amax(1)
