"""ESIM (Chen et al. 2017): the vectors of two texts -> scores of how one follows from the other.

    inputs -> biLSTM -> A, B     each word of A attends to B -> A~     [A, A~, A - A~, A * A~] -> feed-forward -> biLSTM
    the mean and the largest over the words of both -> two fully connected layers -> scores

and B as A. B batch, T words of a text (S of the other), D input, E second input, H hidden, W = 2H + E, K classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiLstm, Packing, VariationalDropout, mask_packing


class EsimNetwork(nn.Module):
    """`extra` is the size of the vectors that join what the first LSTM gives, before the attention."""

    def __init__(self, inputs: int, classes: int, *, hidden: int = 300, dropout: float = 0.5, extra: int = 0) -> None:
        super().__init__()
        self.column_dropout = VariationalDropout(dropout)
        self.encoder = BiLstm(inputs, hidden)
        self.projection = nn.Sequential(nn.Linear(4 * (2 * hidden + extra), hidden), nn.ReLU())
        self.composition = BiLstm(hidden, hidden)
        self.output = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(8 * hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(
        self, first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor,
        first_extra: Tensor | None = None, second_extra: Tensor | None = None,
        first_packing: Packing | None = None, second_packing: Packing | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D), (B, T), (B, S, D), (B, S), perhaps (B, T, E) and (B, S, E) -> (B, K). No text is without words."""
        packings = first_packing or mask_packing(first_mask), second_packing or mask_packing(second_mask)
        one = self._encode(first, first_mask, first_extra, packings[0])  # (B, T, W)
        two = self._encode(second, second_mask, second_extra, packings[1])  # (B, S, W)
        products = one @ two.transpose(1, 2)  # (B, T, S)
        pooled = [
            self._compose(one, first_mask, _attend(products, second_mask, two), packings[0]),
            self._compose(two, second_mask, _attend(products.transpose(1, 2), first_mask, one), packings[1]),
        ]
        scores: Tensor = self.output(torch.cat(pooled, 1))
        return scores

    def _encode(self, inputs: Tensor, mask: Tensor, extra: Tensor | None, packing: Packing) -> Tensor:
        states: Tensor = self.encoder(self.column_dropout(inputs), mask, packing)
        if extra is None:
            return states
        return torch.cat([states, self.column_dropout(extra.masked_fill(~mask.unsqueeze(2), 0.0))], 2)

    def _compose(self, own: Tensor, mask: Tensor, other: Tensor, packing: Packing) -> Tensor:  # (B, 4H)
        """What a text says in the light of the other: the paper's local inference, composition and pooling."""
        local = self.projection(torch.cat([own, other, own - other, own * other], 2))
        states = self.composition(self.column_dropout(local), mask, packing)
        largest = states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)
        return torch.cat([states.sum(1) / mask.sum(1, keepdim=True), largest], 1)


def _attend(products: Tensor, mask: Tensor, other: Tensor) -> Tensor:
    """Each word's summary of the other text, by its products with their words: (B, T, S), (B, S, W) -> (B, T, W)."""
    return products.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2) @ other
