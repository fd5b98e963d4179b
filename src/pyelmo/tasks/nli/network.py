"""ESIM, the enhanced sequential inference model of Chen et al. (2017), for a premise and a hypothesis.

    word vectors -> biLSTM [and ELMo's output mix] -> P, Q
    each word of P attends to Q -> P~, and each word of Q to P -> Q~
    [P, P~, P - P~, P * P~] -> feed-forward layer -> biLSTM -> mean and maximum over the words; the same for Q
    both texts -> two fully connected layers -> scores of labels

B batch, T positions of the first text, S of the second, D input size, E size of ELMo's output mix, H hidden size,
W = 2H + E, K labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiLstm, Packing, VariationalDropout, mask_packing


class EsimNetwork(nn.Module):
    """The layers that score the labels of pairs; `extra` is the size E, or 0 without ELMo after the first LSTM."""

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
        """Return scores of labels. Every text must have at least one word.

        (B, T, D), (B, T), (B, S, D), (B, S), optionally (B, T, E) and (B, S, E) -> (B, K).
        """
        first_packing = first_packing or mask_packing(first_mask)
        second_packing = second_packing or mask_packing(second_mask)
        first = self._encode(first, first_mask, first_extra, first_packing)  # (B, T, W)
        second = self._encode(second, second_mask, second_extra, second_packing)  # (B, S, W)
        products = first @ second.transpose(1, 2)  # (B, T, S)
        first_attended = _attend(products, second_mask, second)  # (B, T, W)
        first_pooled = self._compose(first, first_mask, first_attended, first_packing)  # (B, 4H)
        second_attended = _attend(products.transpose(1, 2), first_mask, first)  # (B, S, W)
        second_pooled = self._compose(second, second_mask, second_attended, second_packing)  # (B, 4H)
        scores: Tensor = self.output(torch.cat([first_pooled, second_pooled], 1))
        return scores

    def _encode(self, inputs: Tensor, mask: Tensor, extra: Tensor | None, packing: Packing) -> Tensor:
        states: Tensor = self.encoder(self.column_dropout(inputs), mask, packing)  # (B, T, 2H)
        if extra is None:
            return states
        return torch.cat([states, self.column_dropout(extra.masked_fill(~mask.unsqueeze(2), 0.0))], 2)

    def _compose(self, own: Tensor, mask: Tensor, attended: Tensor, packing: Packing) -> Tensor:
        """Apply the paper's local inference, composition and pooling: (B, T, W), (B, T), (B, T, W) -> (B, 4H)."""
        local = self.projection(torch.cat([own, attended, own - attended, own * attended], 2))  # (B, T, H)
        states = self.composition(self.column_dropout(local), mask, packing)  # (B, T, 2H)
        maximum = states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)
        return torch.cat([states.sum(1) / mask.sum(1, keepdim=True), maximum], 1)


def _attend(products: Tensor, mask: Tensor, other: Tensor) -> Tensor:  # (B, T, S), (B, S), (B, S, W) -> (B, T, W)
    """Return for each word the mean of the other text's words, weighted by the softmax of their products with it."""
    return products.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2) @ other
