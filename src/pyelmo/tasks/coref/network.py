"""Who is who (Lee et al. 2017): the words of a document -> spans that may be mentions -> what each refers back to.

    words -> biLSTM, sentence by sentence -> a score for every span -> the best that do not cross -> for each of them
    a score for every one of the A spans before it, and 0 for none of them

A span's vector is [first word, last word, head, width], the head a sum of its words' inputs weighted by attention. The
first layer of a feed-forward net is linear in these parts, so it is applied to words before they are gathered by spans
(and to heads before they are summed): no tensor holds the vectors of all candidates, nor the words of each.

S sentences, T words of a sentence, N words, D input, E second input, O a word's output, C candidates, W words of the
widest span, M spans kept, A antecedents, G a span's vector, H hidden, F a feature's vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear, pad
from torch.utils.checkpoint import checkpoint

from pyelmo.model.recurrent import BiLstm
from pyelmo.tasks.coref.spans import Spans, candidates, keep_best, roots

DISTANCES = (2, 3, 4, 5, 8, 16, 32, 64)  # spans further back than 1, where a new bucket begins
PAIRS = 1 << 16  # pairs of spans scored at once: bounds memory, in training by computing them again
SPEAKERS = 3  # of two spans: not known, the same, different


@dataclass(frozen=True)
class Ranking:
    """The spans kept and, for each, the scores of those before it: the last column is the span right before."""

    spans: Spans
    mentions: Tensor  # (M,) how much each looks like a mention
    scores: Tensor  # (M, A) -inf where there is no span so far back

    def loss(self, clusters: Tensor) -> Tensor:
        """What is missing of all right antecedents together; `clusters` (M,) has 0 for what is in none."""
        earlier = windows(clusters[:, None], self.scores.shape[1]).squeeze(2)
        right = (earlier == clusters[:, None]) & (clusters[:, None] > 0)
        right = torch.cat([~right.any(1, keepdim=True), right], 1)  # none is right where no other is
        scores = pad(self.scores, (1, 0))
        return (scores.logsumexp(1) - scores.masked_fill(~right, -torch.inf).logsumexp(1)).sum()

    def links(self) -> Tensor:  # (M,)
        """The best antecedent of each span; the span itself where that is none."""
        count, width = self.scores.shape
        best = pad(self.scores, (1, 0)).argmax(1)
        places = torch.arange(count, device=best.device)
        return torch.where(best > 0, places - width + best - 1, places)

    def clusters(self) -> list[list[tuple[int, int]]]:
        """First and last words of the mentions of each cluster of two or more."""
        found: dict[int, list[tuple[int, int]]] = {}
        rows = torch.stack([roots(self.links()), *self.spans], 1).tolist()
        for root, start, last in rows:
            found.setdefault(root, []).append((start, last))
        return [mentions for mentions in found.values() if len(mentions) > 1]


class Scorer(nn.Module):
    """A feed-forward net with one output; its first layer is applied by the caller, part by part of its input."""

    def __init__(self, sizes: tuple[int, ...], hidden: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.sizes = sizes
        self.first = nn.Linear(sum(sizes), hidden)
        self.others = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth - 1))
        self.score = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(dropout)

    def weights(self) -> tuple[Tensor, ...]:
        """The first layer's, for each part (H, size)."""
        parts: tuple[Tensor, ...] = self.first.weight.split(self.sizes, 1)
        return parts

    def forward(self, summed: Tensor) -> Tensor:  # (..., H) -> (...)
        """The score, from the sum of the parts' shares without the bias."""
        states = self.dropout(torch.relu(summed + self.first.bias))
        for layer in self.others:
            states = self.dropout(torch.relu(layer(states)))
        found: Tensor = self.score(states).squeeze(-1)
        return found


class CorefNetwork(nn.Module):
    """One document at a time. `extra` is the size of the vectors that join what the LSTM gives."""

    def __init__(
        self, inputs: int, *, extra: int = 0, genres: int = 1, hidden: int = 200, scorer: int = 150, depth: int = 2,
        feature: int = 20, width: int = 10, ratio: float = 0.4, antecedents: int = 250, dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width, self.ratio, self.antecedents = width, ratio, antecedents
        self.lstm = BiLstm(inputs, hidden)
        word = 2 * hidden + extra
        vector = 2 * word + inputs + feature
        self.heads = Scorer((word,), scorer, depth, dropout)
        self.mentions = Scorer((word, word, inputs, feature), scorer, depth, dropout)
        self.pairs = Scorer((vector, vector, vector, feature, feature, feature), scorer, depth, dropout)
        self.widths = nn.Embedding(width, feature)
        self.distances = nn.Embedding(len(DISTANCES) + 1, feature)
        self.speakers = nn.Embedding(SPEAKERS, feature)
        self.genres = nn.Embedding(genres, feature)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, inputs: Tensor, mask: Tensor, extra: Tensor | None = None, speakers: Tensor | None = None, genre: int = 0
    ) -> Ranking:
        """(S, T, D), (S, T), perhaps (S, T, E); the words' speakers (N,) and the genre by number, 0 for not known."""
        states = self.dropout(self.lstm(inputs, mask))
        if extra is not None:
            states = torch.cat([states, extra], 2)
        words, inputs = states[mask], inputs[mask]  # (N, O), (N, D)
        attention = self.heads(linear(words, *self.heads.weights()))  # (N,)
        widths = self.dropout(self.widths.weight)  # (W, F)
        spans = candidates(mask, self.width)
        scores = self._mention_scores(words, inputs, attention, widths, spans)  # (C,)
        kept = keep_best(spans, scores, max(1, int(self.ratio * len(words))))
        spans, scores = spans.at(kept), scores[kept]
        heads = self._heads(inputs, attention, spans)
        vectors = torch.cat([words[spans.starts], words[spans.lasts], heads, widths[spans.widths]], 1)  # (M, G)
        speakers = torch.zeros_like(spans.starts) if speakers is None else speakers[spans.starts]
        return Ranking(spans, scores, self._pair_scores(vectors, scores, speakers, genre))

    def _mention_scores(self, words: Tensor, inputs: Tensor, attention: Tensor, widths: Tensor, spans: Spans) -> Tensor:
        start, last, head, width = self.mentions.weights()
        summed = linear(words, start)[spans.starts] + linear(words, last)[spans.lasts]  # (C, H)
        summed = summed + self._heads(linear(inputs, head), attention, spans) + linear(widths, width)[spans.widths]
        found: Tensor = self.mentions(summed)
        return found

    def _heads(self, values: Tensor, attention: Tensor, spans: Spans) -> Tensor:  # (N, X), (N,) -> (C, X)
        """The words' values, summed over each span by the attention they get in it."""
        places = spans.starts[:, None] + torch.arange(self.width, device=values.device)  # (C, W)
        inside = places <= spans.lasts[:, None]
        places = places.minimum(spans.lasts[:, None])
        weights = attention[places].masked_fill(~inside, -torch.inf).softmax(1)
        found: Tensor = embedding_bag(places, values, per_sample_weights=weights, mode="sum")
        return found

    def _pair_scores(self, vectors: Tensor, mentions: Tensor, speakers: Tensor, genre: int) -> Tensor:  # (M, A)
        """s(i, j): how much both look like mentions, and how well j fits as what i refers to."""
        count, size = len(vectors), max(1, min(self.antecedents, len(vectors) - 1))
        one, other, both, distance, speaker, kind = self.pairs.weights()
        back = torch.arange(size, 0, -1, device=vectors.device)  # how far each column is
        buckets = torch.bucketize(back, torch.tensor(DISTANCES, device=back.device), right=True)
        distances = linear(self.dropout(self.distances(buckets)), distance)  # (A, H)
        same = linear(self.dropout(self.speakers.weight), speaker)  # (3, H)
        fixed = linear(vectors, one) + linear(self.dropout(self.genres.weight[genre]), kind)  # (M, H)
        earlier = linear(vectors, other)

        def scored(begin: int, end: int) -> Tensor:
            rows = slice(begin, end)
            first = max(0, begin - size)

            def near(values: Tensor) -> Tensor:
                return windows(values[first:end], size)[begin - first :]

            theirs, mine = near(speakers[:, None]).squeeze(2), speakers[rows, None]
            relation = torch.where((theirs > 0) & (mine > 0), 2 - (theirs == mine).long(), 0)
            # W (g_i * g_j) is (W diag g_i) g_j: as many products of matrices as there are rows
            summed = near(vectors) @ (vectors[rows, :, None] * both.T)  # (rows, A, H)
            summed = summed + fixed[rows, None] + near(earlier) + distances + nn.functional.embedding(relation, same)
            found: Tensor = self.pairs(summed) + mentions[rows, None] + near(mentions[:, None]).squeeze(2)
            return found

        step = max(1, PAIRS // size)
        chunks = [(begin, min(begin + step, count)) for begin in range(0, count, step)]
        if torch.is_grad_enabled() and len(chunks) > 1:
            parts = [checkpoint(scored, *chunk, use_reentrant=False) for chunk in chunks]
        else:
            parts = [scored(*chunk) for chunk in chunks]
        exists = torch.arange(count, device=vectors.device)[:, None] >= back
        return torch.cat(parts).masked_fill(~exists, -torch.inf)


def windows(values: Tensor, size: int) -> Tensor:  # (M, X) -> (M, size, X)
    """For each row the `size` rows before it, the nearest last, 0 before the first: a view that copies nothing."""
    return pad(values[:-1], (0, 0, size, 0)).unfold(0, size, 1).transpose(1, 2)


def gold_clusters(spans: Spans, mentions: Tensor, width: int, words: int) -> Tensor:  # (M,)
    """The number of each span's cluster, 0 for none; `mentions` (X, 3) are first and last words and numbers from 1."""
    table = mentions.new_zeros(words, width)
    starts, lasts, numbers = mentions[mentions[:, 1] - mentions[:, 0] < width].unbind(1)
    table[starts, lasts - starts] = numbers
    return table[spans.starts, spans.widths]
