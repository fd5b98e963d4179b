"""The network for named entities of Peters et al. (2017, 2018): two bidirectional LSTM layers below a CRF.

    word vectors -> biLSTM -> biLSTM [and ELMo's output mix] -> linear layer -> emissions of a CRF

B batch, T positions, D input size, E size of ELMo's output mix, H1 and H2 hidden sizes, K labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiLstm, Packing, VariationalDropout, mask_packing


class TaggerNetwork(nn.Module):
    """The layers that compute the emissions of a `CRF`; `extra` is the size E, or 0 without ELMo at the output."""

    def __init__(
        self, inputs: int, labels: int, *, hidden: tuple[int, int] = (200, 100), dropout: float = 0.5, extra: int = 0
    ) -> None:
        super().__init__()
        first, second = hidden
        self.first = BiLstm(inputs, first)
        self.second = BiLstm(2 * first, second)
        self.dropout = VariationalDropout(dropout)
        self.emissions = nn.Linear(2 * second + extra, labels)

    def forward(
        self, inputs: Tensor, mask: Tensor, extra: Tensor | None = None, packing: Packing | None = None
    ) -> Tensor:
        """Return emissions: (B, T, D), mask (B, T), optionally (B, T, E) -> (B, T, K), meaningless at padding."""
        packing = packing or mask_packing(mask)
        states = self.first(self.dropout(inputs), mask, packing)  # (B, T, 2 H1)
        states = self.second(self.dropout(states), mask, packing)  # (B, T, 2 H2)
        if extra is not None:
            states = torch.cat([states, self.dropout(extra)], 2)  # (B, T, 2 H2 + E)
        emissions: Tensor = self.emissions(states)
        return emissions
