"""The network for semantic roles of He et al. (2017): highway LSTM layers in alternating directions.

    word vectors and a predicate flag -> highway LSTM forward -> backward -> ... [and ELMo's output mix] -> linear layer
    -> scores of BIO labels -> Viterbi decoding of the best valid sequence

B batch, T positions, D input size, F flag size, E size of ELMo's output mix, H hidden size, K labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyelmo.model.highway_lstm import HighwayLayer
from pyelmo.tasks.labels.crf import allowed_transitions, viterbi
from pyelmo.tasks.labels.marginals import Marginals


class SrlNetwork(nn.Module):
    """The layers that score the labels of a predicate's arguments; `extra` is the size E, or 0 without that mix."""

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
        """Return scores of labels, which are meaningless at padding.

        Inputs (B, T, D), positions of the predicates (B,), mask (B, T), optionally (B, T, E) -> (B, T, K).
        """
        positions = torch.arange(inputs.shape[1], device=inputs.device)
        flags = self.flag((positions == predicates.unsqueeze(1)).long())  # (B, T, F)
        inputs = inputs.masked_fill(~mask.unsqueeze(2), 0.0)
        states = torch.cat([inputs, flags], 2).transpose(0, 1)  # (T, B, D + F)
        masks = mask.T, mask.T.flip(0)
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda):  # cells stay in float32
            for number, layer in enumerate(self.layers):
                if number:  # each layer reads against the direction of the one before
                    states = states.flip(0)
                states = layer(states, masks[number % 2])  # (T, B, H)
        if len(self.layers) % 2 == 0:
            states = states.flip(0)
        states = states.transpose(0, 1)  # (B, T, H)
        scores: Tensor = self.scores(states if extra is None else torch.cat([states, extra], 2))
        return scores

    def decode(self, scores: Tensor, mask: Tensor) -> list[list[int]]:
        """Return the numbers of each sentence's best labels among those that form valid spans."""
        return viterbi(scores, mask, *_no_transitions(scores), self.allowed)

    def marginals(self, scores: Tensor, mask: Tensor) -> Marginals:
        """Return the probabilities of label sequences among those that form valid spans."""
        return Marginals(scores, mask, *_no_transitions(scores), self.allowed)


def _no_transitions(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores of transitions, starts and ends of a network that has none."""
    zeros = scores.new_zeros(scores.shape[2])
    return scores.new_zeros(len(zeros), len(zeros)), zeros, zeros
