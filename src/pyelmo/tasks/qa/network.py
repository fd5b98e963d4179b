"""The reader of Clark & Gardner (2017) as Peters et al. (2018) used it: passage and question -> where the answer is.

    passage, question -> the same biGRU [, output's ELMo] -> attention between the two -> M
    M -> biGRU -> attention of the passage to itself -> added to M -> biGRU -> scores of an answer's first word
                                                         M, that biGRU -> biGRU -> scores of its last word

B batch, T words of the passage, J of the question, D input, E second input, H hidden, A = 2H + E, W longest answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiGru, Packing, VariationalDropout, mask_packing

AT_ONCE = 1 << 24  # numbers of the (B, T, T) products of a passage with itself that are made together: bounds memory


@dataclass(frozen=True)
class Side:
    """A batch of passages, or of questions; each has a word at least."""

    vectors: Tensor  # (B, T, D)
    mask: Tensor  # (B, T)
    extra: Tensor | None = None  # (B, T, E)
    packing: Packing | None = None


class Scores(NamedTuple):
    """Of every word of the passage, -inf after its end."""

    first: Tensor  # (B, T)
    last: Tensor  # (B, T)


class QaNetwork(nn.Module):
    """`extra` is the size of the vectors that join what the first GRU gives, on both sides."""

    def __init__(self, inputs: int, *, hidden: int = 90, dropout: float = 0.2, extra: int = 0) -> None:
        super().__init__()
        width = 2 * hidden
        self.dropout = VariationalDropout(dropout)
        self.encoder = BiGru(inputs, hidden)
        self.attention = BiAttention(width + extra, width, dropout)
        self.rereader = BiGru(width, hidden)
        self.self_attention = SelfAttention(width, width, dropout)
        self.first_gru = BiGru(width, hidden)
        self.last_gru = BiGru(2 * width, hidden)
        # A bias would move all words' scores alike, which changes no probability.
        self.first = nn.Linear(width, 1, bias=False)
        self.last = nn.Linear(width, 1, bias=False)

    def forward(self, passage: Side, question: Side) -> Scores:
        mask, drop = passage.mask, self.dropout
        packings = [side.packing or mask_packing(side.mask) for side in (passage, question)]
        encoded = [drop(self._encode(*each)) for each in zip((passage, question), packings, strict=True)]
        mixed = self.attention(*encoded, mask, question.mask)
        reread = self.rereader(drop(mixed), mask, packings[0])
        mixed = mixed + self.self_attention(drop(reread), mask)  # (B, T, 2H)
        firsts = self.first_gru(drop(mixed), mask, packings[0])
        lasts = self.last_gru(drop(torch.cat([mixed, firsts], 2)), mask, packings[0])
        scores = (self.first(drop(firsts)), self.last(drop(lasts)))
        return Scores(*(each.squeeze(2).masked_fill(~mask, -torch.inf) for each in scores))

    def _encode(self, side: Side, packing: Packing) -> Tensor:  # (B, T, A)
        padding = ~side.mask.unsqueeze(2)
        states: Tensor = self.encoder(self.dropout(side.vectors.masked_fill(padding, 0.0)), side.mask, packing)
        return states if side.extra is None else torch.cat([states, side.extra.masked_fill(padding, 0.0)], 2)


class BiAttention(nn.Module):
    """Of two texts (Seo et al. 2017), by w1 h_i + w2 q_j + w3 (h_i * q_j).

    c_i is what the question has for the passage's word h_i, and s what the passage has for the question; a layer over
    [h_i, c_i, h_i * c_i, s * c_i] follows.
    """

    def __init__(self, size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.passage = nn.Linear(size, 1, bias=False)
        self.question = nn.Linear(size, 1, bias=False)
        self.product = _product(size)
        self.dropout = VariationalDropout(dropout)
        self.output = nn.Linear(4 * size, outputs)

    def forward(self, passage: Tensor, question: Tensor, passage_mask: Tensor, question_mask: Tensor) -> Tensor:
        """(B, T, A), (B, J, A), (B, T), (B, J) -> (B, T, outputs)."""
        likeness = (passage * self.product) @ question.transpose(1, 2)  # (B, T, J)
        likeness = likeness + self.passage(passage) + self.question(question).transpose(1, 2)
        likeness = likeness.masked_fill(~question_mask.unsqueeze(1), -torch.inf)
        attended = likeness.softmax(2) @ question
        weights = likeness.amax(2).masked_fill(~passage_mask, -torch.inf).softmax(1)
        summary = weights.unsqueeze(1) @ passage  # (B, 1, A)
        joined = torch.cat([passage, attended, passage * attended, summary * attended], 2)
        found: Tensor = self.output(self.dropout(joined)).relu()
        return found


class SelfAttention(nn.Module):
    """Of a text's words to the others, by w2 h_j + w3 (h_i * h_j), and a layer over [h_i, c_i, h_i * c_i].

    The w1 h_i of two texts would be the same for all j, and change nothing. The only word of a text attends to itself.
    """

    def __init__(self, size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.other = nn.Linear(size, 1, bias=False)
        self.product = _product(size)
        self.dropout = VariationalDropout(dropout)
        self.output = nn.Linear(3 * size, outputs)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, T, A), (B, T) -> (B, T, outputs)."""
        attended = self.attend(states, mask)
        joined = torch.cat([states, attended, states * attended], 2)
        found: Tensor = self.output(self.dropout(joined)).relu()
        return found

    def attend(self, states: Tensor, mask: Tensor, at_once: int = AT_ONCE) -> Tensor:
        """(B, T, A), (B, T) -> (B, T, A), for as many words together as make `at_once` products."""
        size, length, _ = states.shape
        others = self.other(states).transpose(1, 2).masked_fill(~mask.unsqueeze(1), -torch.inf)  # (B, 1, T)
        company = (mask.sum(1) > 1).unsqueeze(1)  # (B, 1)
        scaled, keys = states * self.product, states.transpose(1, 2)
        parts = []
        step = max(1, at_once // (size * length))
        for start in range(0, length, step):
            likeness = scaled[:, start : start + step] @ keys + others  # (B, step, T)
            likeness.diagonal(start, 1, 2).masked_fill_(company, -torch.inf)  # a word's likeness with itself
            parts.append(likeness.softmax(2) @ states)
        return torch.cat(parts, 1)


def _product(size: int) -> nn.Parameter:
    """A weight of products, drawn as torch draws those of a linear layer."""
    return nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))


def answer_loss(scores: Scores, places: Sequence[Sequence[tuple[int, int]]]) -> Tensor:
    """The mean of -log of the probability of all right first words, and the same of last words.

    `places` are the first and last words of all right answers of each example: which of them was meant is not known.
    """
    right = torch.zeros(2, *scores.first.shape, dtype=torch.bool)
    rows, firsts, lasts = torch.tensor([(row, *place) for row, each in enumerate(places) for place in each]).T
    right[0, rows, firsts] = True
    right[1, rows, lasts] = True
    both = torch.stack(scores)  # (2, B, T)
    good = both.masked_fill(~right.to(both.device, non_blocking=True), -torch.inf)
    return (both.logsumexp(2) - good.logsumexp(2)).sum(0).mean()


def best_places(scores: Scores, longest: int) -> list[tuple[int, int]]:
    """The first and last word of the most probable answer of at most `longest` words.

    Exact: the best last word of every first one, then the best of these; of equals the first, the shortest.
    """
    width = min(longest, scores.first.shape[1])
    ahead = nn.functional.pad(scores.last, (0, width - 1), value=-torch.inf).unfold(1, width, 1)  # (B, T, W)
    ends = ahead.argmax(2)  # (B, T)
    totals = scores.first + ahead.gather(2, ends.unsqueeze(2)).squeeze(2)
    firsts = totals.argmax(1, keepdim=True)  # (B, 1)
    found = torch.cat([firsts, firsts + ends.gather(1, firsts)], 1)
    return [(first, last) for first, last in found.tolist()]
