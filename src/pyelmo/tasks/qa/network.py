"""The network for question answering of Clark & Gardner (2017) as Peters et al. (2018) used it.

    passage, question -> the same biGRU for both [and ELMo's output mix] -> attention between the two -> M
    M -> biGRU -> attention of the passage to itself -> added to M -> biGRU F -> scores of the answer's first word
                                                        [M, F] -> biGRU   -> scores of its last word

B batch, T positions of the passage, J of the question, D input size, E size of ELMo's output mix, H hidden size,
A = 2H + E, W words of the longest answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pyelmo.model.recurrent import BiGru, Packing, VariationalDropout, mask_packing

AT_ONCE = 1 << 24  # largest number of products (B, T, T) of a passage with itself in memory


@dataclass(frozen=True)
class TextBatch:
    """A batch of passages, or of questions; each must have at least one word."""

    vectors: Tensor  # (B, T, D)
    mask: Tensor  # (B, T)
    extra: Tensor | None = None  # (B, T, E)
    packing: Packing | None = None


class BoundaryScores(NamedTuple):
    """The scores of each word of the passage as the answer's first or last word; -inf at padding."""

    first: Tensor  # (B, T)
    last: Tensor  # (B, T)


class QaNetwork(nn.Module):
    """The layers that score the bounds of answers; `extra` is the size E, or 0 without ELMo after the first GRU."""

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
        # A bias would add the same to the scores of all words, which changes no probability.
        self.first = nn.Linear(width, 1, bias=False)
        self.last = nn.Linear(width, 1, bias=False)

    def forward(self, passage: TextBatch, question: TextBatch) -> BoundaryScores:
        mask, drop = passage.mask, self.dropout
        packing = passage.packing or mask_packing(mask)
        question_packing = question.packing or mask_packing(question.mask)
        encoded = drop(self._encode(passage, packing))  # (B, T, A)
        encoded_question = drop(self._encode(question, question_packing))  # (B, J, A)
        mixed = self.attention(encoded, encoded_question, mask, question.mask)  # (B, T, 2H)
        reread = self.rereader(drop(mixed), mask, packing)  # (B, T, 2H)
        mixed = mixed + self.self_attention(drop(reread), mask)  # (B, T, 2H)
        firsts = self.first_gru(drop(mixed), mask, packing)  # (B, T, 2H)
        lasts = self.last_gru(drop(torch.cat([mixed, firsts], 2)), mask, packing)  # (B, T, 2H)
        scores = (self.first(drop(firsts)), self.last(drop(lasts)))  # (B, T, 1) each
        return BoundaryScores(*(values.squeeze(2).masked_fill(~mask, -torch.inf) for values in scores))

    def _encode(self, texts: TextBatch, packing: Packing) -> Tensor:  # (B, T, A)
        padding = ~texts.mask.unsqueeze(2)
        states: Tensor = self.encoder(self.dropout(texts.vectors.masked_fill(padding, 0.0)), texts.mask, packing)
        return states if texts.extra is None else torch.cat([states, texts.extra.masked_fill(padding, 0.0)], 2)


class BiAttention(nn.Module):
    """Attention between passage and question (Seo et al. 2017), with similarity w1 h_i + w2 q_j + w3 (h_i * q_j).

    c_i is the mean of the question's words, weighted for the passage's word h_i, and s the mean of the passage's
    words, weighted by their highest similarity. A linear layer over [h_i, c_i, h_i * c_i, s * c_i] follows.
    """

    def __init__(self, size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.passage = nn.Linear(size, 1, bias=False)
        self.question = nn.Linear(size, 1, bias=False)
        self.product = _product_weight(size)
        self.dropout = VariationalDropout(dropout)
        self.output = nn.Linear(4 * size, outputs)

    def forward(self, passage: Tensor, question: Tensor, passage_mask: Tensor, question_mask: Tensor) -> Tensor:
        """(B, T, A), (B, J, A), (B, T), (B, J) -> (B, T, outputs)."""
        similarity = (passage * self.product) @ question.transpose(1, 2)  # (B, T, J)
        similarity = similarity + self.passage(passage) + self.question(question).transpose(1, 2)
        similarity = similarity.masked_fill(~question_mask.unsqueeze(1), -torch.inf)
        attended = similarity.softmax(2) @ question  # (B, T, A)
        weights = similarity.amax(2).masked_fill(~passage_mask, -torch.inf).softmax(1)  # (B, T)
        summary = weights.unsqueeze(1) @ passage  # (B, 1, A)
        joined = torch.cat([passage, attended, passage * attended, summary * attended], 2)  # (B, T, 4A)
        outputs: Tensor = self.output(self.dropout(joined)).relu()
        return outputs


class SelfAttention(nn.Module):
    """Attention of each word to the other words, with similarity w2 h_j + w3 (h_i * h_j).

    The term w1 h_i of `BiAttention` would be the same for all j and change nothing. A text's only word attends to
    itself. A linear layer over [h_i, c_i, h_i * c_i] follows.
    """

    def __init__(self, size: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.other = nn.Linear(size, 1, bias=False)
        self.product = _product_weight(size)
        self.dropout = VariationalDropout(dropout)
        self.output = nn.Linear(3 * size, outputs)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """(B, T, A), (B, T) -> (B, T, outputs)."""
        attended = self.attend(states, mask)
        joined = torch.cat([states, attended, states * attended], 2)  # (B, T, 3A)
        outputs: Tensor = self.output(self.dropout(joined)).relu()
        return outputs

    def attend(self, states: Tensor, mask: Tensor, at_once: int = AT_ONCE) -> Tensor:
        """(B, T, A), (B, T) -> (B, T, A), in chunks of positions with at most `at_once` products each."""
        size, length, _ = states.shape
        others = self.other(states).transpose(1, 2).masked_fill(~mask.unsqueeze(1), -torch.inf)  # (B, 1, T)
        several_words = (mask.sum(1) > 1).unsqueeze(1)  # (B, 1)
        scaled, keys = states * self.product, states.transpose(1, 2)
        chunks = []
        step = max(1, at_once // (size * length))
        for start in range(0, length, step):
            similarity = scaled[:, start : start + step] @ keys + others  # (B, step, T)
            similarity.diagonal(start, 1, 2).masked_fill_(several_words, -torch.inf)  # of a word with itself
            chunks.append(similarity.softmax(2) @ states)
        return torch.cat(chunks, 1)


def _product_weight(size: int) -> nn.Parameter:
    """Return the weight w3, initialised like that of a linear layer of torch."""
    return nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))


def answer_loss(scores: BoundaryScores, spans: Sequence[Sequence[tuple[int, int]]]) -> Tensor:
    """Return the mean over the examples of -log p(correct first word) - log p(correct last word).

    `spans` are the first and last words of all correct answers of each example; their probabilities are added, because
    it is not known which of them was meant.
    """
    correct = torch.zeros(2, *scores.first.shape, dtype=torch.bool)
    triples = [(row, first, last) for row, row_spans in enumerate(spans) for first, last in row_spans]
    rows, firsts, lasts = torch.tensor(triples).T
    correct[0, rows, firsts] = True
    correct[1, rows, lasts] = True
    values = torch.stack(scores)  # (2, B, T)
    correct_values = values.masked_fill(~correct.to(values.device, non_blocking=True), -torch.inf)
    return (values.logsumexp(2) - correct_values.logsumexp(2)).sum(0).mean()


def span_probabilities(scores: BoundaryScores, spans: Sequence[tuple[int, int]], longest: int) -> list[float]:
    """Return the probability of a span of each passage among all its spans of at most `longest` words."""
    firsts, lasts = torch.tensor(spans, device=scores.first.device).T  # (B,) each
    rows = torch.arange(len(firsts), device=firsts.device)
    totals = (scores.first.unsqueeze(2) + _words_ahead(scores, longest)).double()  # (B, T, W)
    chosen = totals[rows, firsts, lasts - firsts]
    probabilities: list[float] = (chosen - totals.flatten(1).logsumexp(1)).exp().tolist()
    return probabilities


def _words_ahead(scores: BoundaryScores, longest: int) -> Tensor:  # (B, T, W)
    """Return for each first word the scores of the last words of answers of at most `longest` words."""
    width = min(longest, scores.first.shape[1])
    return nn.functional.pad(scores.last, (0, width - 1), value=-torch.inf).unfold(1, width, 1)


def best_spans(scores: BoundaryScores, longest: int) -> list[tuple[int, int]]:
    """Return the first and last word of each passage's best answer of at most `longest` words.

    The search is exact: it takes the best last word for every first word, then the best of these pairs. Of equal
    answers it takes the earliest, then the shortest.
    """
    ahead = _words_ahead(scores, longest)  # (B, T, W)
    offsets = ahead.argmax(2)  # (B, T)
    totals = scores.first + ahead.gather(2, offsets.unsqueeze(2)).squeeze(2)  # (B, T)
    firsts = totals.argmax(1, keepdim=True)  # (B, 1)
    spans = torch.cat([firsts, firsts + offsets.gather(1, firsts)], 1)  # (B, 2)
    return [(first, last) for first, last in spans.tolist()]
