"""The network for semantic roles of He et al. (2017): words and where the predicate is -> scores of BIO labels.

B batch, T time, D input, E second input, H hidden, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyelmo.model.highway_lstm import HighwayLayer
from pyelmo.tasks.labels.crf import allowed_transitions, viterbi


class SrlNetwork(nn.Module):
    """A flag for the predicate's word beside each input, highway LSTMs in directions by turns, a linear layer.

    `extra` is the size of the vectors that join what the LSTMs give.
    """

    allowed: Tensor

    def __init__(
        self,
        inputs: int,
        labels: Sequence[str],
        *,
        hidden: int = 300,
        layers: int = 8,
        flag: int = 100,
        dropout: float = 0.1,
        extra: int = 0,
    ) -> None:
        super().__init__()
        self.flag = nn.Embedding(2, flag)
        sizes = [inputs + flag] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList(HighwayLayer(size, hidden, dropout) for size in sizes)
        self.scores = nn.Linear(hidden + extra, len(labels))
        self.register_buffer("allowed", allowed_transitions(labels, "bio"), persistent=False)

    def forward(self, inputs: Tensor, predicates: Tensor, mask: Tensor, extra: Tensor | None = None) -> Tensor:
        """(B, T, D), the place of each predicate (B,), (B, T), perhaps (B, T, E) -> (B, T, K), for words alone."""
        places = torch.arange(inputs.shape[1], device=inputs.device)
        flags = self.flag((places == predicates.unsqueeze(1)).long())
        inputs = inputs.masked_fill(~mask.unsqueeze(2), 0.0)
        states = torch.cat([inputs, flags], 2).transpose(0, 1)  # time first
        lives = mask.T, mask.T.flip(0)
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda):  # cells stay in float32
            for number, layer in enumerate(self.layers):
                if number:  # each layer reads against the direction of the one before
                    states = states.flip(0)
                states = layer(states, lives[number % 2])
        if len(self.layers) % 2 == 0:
            states = states.flip(0)
        states = states.transpose(0, 1)
        scores: Tensor = self.scores(states if extra is None else torch.cat([states, extra], 2))
        return scores

    def decode(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """The numbers of each sentence's best labels that make valid spans."""
        nothing = scores.new_zeros(scores.shape[2])
        return viterbi(scores, mask, scores.new_zeros(len(nothing), len(nothing)), nothing, nothing, self.allowed)
