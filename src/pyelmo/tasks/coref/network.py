"""The network for coreference of Lee et al. (2017): a document -> spans that may be mentions -> links between them.

    words -> biLSTM over each sentence [and ELMo's output mix] -> a score for every span of up to W words
    -> the best M spans that do not cross -> a score for each of the A spans before a span, and 0 for "no antecedent"

The vector of a span is [first word, last word, head, width]; the head is the mean of its words' inputs, weighted by
attention. The first layer of a feed-forward net is linear in these parts, so it is applied to words before they are
gathered by spans (and to heads before they are summed). So no tensor holds the vectors of all candidates, or the words
of each candidate.

S sentences, T positions of a sentence, N words of the document, D input size, E size of ELMo's output mix, O size of
a word's output (2 * LSTM + E), C candidates, W words of the widest span, M kept spans, A antecedents, G size of a
span's vector, H hidden size of a feed-forward net, F size of a feature's embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag, linear, pad
from torch.utils.checkpoint import checkpoint

from pyelmo.model.recurrent import BiLstm
from pyelmo.tasks.coref.spans import Spans, candidates, keep_best, roots

DISTANCES = (2, 3, 4, 5, 8, 16, 32, 64)  # the distance in spans at which each bucket after the first begins
PAIRS = 1 << 16  # pairs of spans scored at once, which bounds memory; training computes each chunk again backwards
SPEAKERS = 3  # relations of two spans' speakers: not known, the same, different


@dataclass(frozen=True)
class Ranking:
    """The kept spans, and for each of them the scores of the spans before it; the last column is the nearest."""

    spans: Spans
    mentions: Tensor  # (M,) the score of each span as a mention
    scores: Tensor  # (M, A) -inf where there is no span that far back

    def loss(self, clusters: Tensor) -> Tensor:
        """Return the sum of -log p(all correct antecedents); `clusters` (M,) numbers the clusters, 0 for none."""
        earlier = windows(clusters[:, None], self.scores.shape[1]).squeeze(2)  # (M, A)
        correct = (earlier == clusters[:, None]) & (clusters[:, None] > 0)
        correct = torch.cat([~correct.any(1, keepdim=True), correct], 1)  # (M, 1 + A), first "no antecedent"
        scores = pad(self.scores, (1, 0))
        return (scores.logsumexp(1) - scores.masked_fill(~correct, -torch.inf).logsumexp(1)).sum()

    def links(self) -> Tensor:  # (M,)
        """Return the best antecedent of each span, or the span itself if it has none."""
        count, width = self.scores.shape
        best = pad(self.scores, (1, 0)).argmax(1)
        rows = torch.arange(count, device=best.device)
        return torch.where(best > 0, rows - width + best - 1, rows)

    def link_probabilities(self) -> Tensor:  # (M,)
        """Return the probability of each span's best antecedent, or of having none if that is best."""
        probabilities: Tensor = pad(self.scores, (1, 0)).double().softmax(1).amax(1)
        return probabilities

    def clusters(self) -> list[list[tuple[int, int]]]:
        """Return the first and last words of the mentions of each cluster of two or more."""
        mentions_of: dict[int, list[tuple[int, int]]] = {}
        for root, start, last in torch.stack([roots(self.links()), *self.spans], 1).tolist():
            mentions_of.setdefault(root, []).append((start, last))
        return [mentions for mentions in mentions_of.values() if len(mentions) > 1]


class Scorer(nn.Module):
    """A feed-forward net with one output, whose input has parts. The caller applies the first layer to each part."""

    def __init__(self, sizes: tuple[int, ...], hidden: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.sizes = sizes
        self.first = nn.Linear(sum(sizes), hidden)
        self.others = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth - 1))
        self.score = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(dropout)

    def weights(self) -> tuple[Tensor, ...]:
        """Return the first layer's weights (H, size) for each part."""
        parts: tuple[Tensor, ...] = self.first.weight.split(self.sizes, 1)
        return parts

    def forward(self, summed: Tensor) -> Tensor:  # (..., H) -> (...)
        """Return the score, given the sum of the first layer's outputs for all parts, without its bias."""
        states = self.dropout(torch.relu(summed + self.first.bias))
        for layer in self.others:
            states = self.dropout(torch.relu(layer(states)))
        scores: Tensor = self.score(states).squeeze(-1)
        return scores


class CorefNetwork(nn.Module):
    """The layers that rank the antecedents of one document's spans; `extra` is the size E, or 0 without that mix."""

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
        """Score (S, T, D) with mask (S, T) and optionally (S, T, E).

        `speakers` (N,) and `genre` are numbers, 0 if not known.
        """
        states = self.dropout(self.lstm(inputs, mask))
        if extra is not None:
            states = torch.cat([states, extra], 2)  # (S, T, O)
        words, inputs = states[mask], inputs[mask]  # (N, O), (N, D)
        attention = self.heads(linear(words, *self.heads.weights()))  # (N,)
        widths = self.dropout(self.widths.weight)  # (W, F)
        spans = candidates(mask, self.width)
        scores = self._mention_scores(words, inputs, attention, widths, spans)  # (C,)
        kept = keep_best(spans, scores, max(1, int(self.ratio * len(words))))  # (M,)
        spans, scores = spans.at(kept), scores[kept]
        heads = self._heads(inputs, attention, spans)  # (M, D)
        vectors = torch.cat([words[spans.starts], words[spans.lasts], heads, widths[spans.widths]], 1)  # (M, G)
        speakers = torch.zeros_like(spans.starts) if speakers is None else speakers[spans.starts]  # (M,)
        return Ranking(spans, scores, self._pair_scores(vectors, scores, speakers, genre))

    def _mention_scores(self, words: Tensor, inputs: Tensor, attention: Tensor, widths: Tensor, spans: Spans) -> Tensor:
        start, last, head, width = self.mentions.weights()
        summed = linear(words, start)[spans.starts] + linear(words, last)[spans.lasts]  # (C, H)
        summed = summed + self._heads(linear(inputs, head), attention, spans) + linear(widths, width)[spans.widths]
        scores: Tensor = self.mentions(summed)
        return scores

    def _heads(self, values: Tensor, attention: Tensor, spans: Spans) -> Tensor:  # (N, X), (N,) -> (C, X)
        """Return the mean of the words' values in each span, weighted by attention."""
        positions = spans.starts[:, None] + torch.arange(self.width, device=values.device)  # (C, W)
        inside = positions <= spans.lasts[:, None]
        positions = positions.minimum(spans.lasts[:, None])
        weights = attention[positions].masked_fill(~inside, -torch.inf).softmax(1)
        heads: Tensor = embedding_bag(positions, values, per_sample_weights=weights, mode="sum")
        return heads

    def _pair_scores(self, vectors: Tensor, mentions: Tensor, speakers: Tensor, genre: int) -> Tensor:  # (M, A)
        """Return s(i, j): the scores of both spans as mentions, and the score of j as the antecedent of i."""
        count, size = len(vectors), max(1, min(self.antecedents, len(vectors) - 1))
        own, other, product, distance, speaker, kind = self.pairs.weights()
        back = torch.arange(size, 0, -1, device=vectors.device)  # (A,) the distance of each column
        buckets = torch.bucketize(back, torch.tensor(DISTANCES, device=back.device), right=True)
        distances = linear(self.dropout(self.distances(buckets)), distance)  # (A, H)
        relations = linear(self.dropout(self.speakers.weight), speaker)  # (3, H)
        fixed = linear(vectors, own) + linear(self.dropout(self.genres.weight[genre]), kind)  # (M, H)
        earlier = linear(vectors, other)  # (M, H)

        def score_rows(begin: int, end: int) -> Tensor:  # (rows, A)
            rows = slice(begin, end)
            first = max(0, begin - size)

            def before(values: Tensor) -> Tensor:  # (M, X) -> (rows, A, X)
                return windows(values[first:end], size)[begin - first :]

            theirs, mine = before(speakers[:, None]).squeeze(2), speakers[rows, None]
            relation = torch.where((theirs > 0) & (mine > 0), 2 - (theirs == mine).long(), 0)
            # W (g_i * g_j) is (W diag g_i) g_j, so each row is one product of matrices.
            summed = before(vectors) @ (vectors[rows, :, None] * product.T)  # (rows, A, H)
            summed = summed + fixed[rows, None] + before(earlier) + distances + embedding(relation, relations)
            scores: Tensor = self.pairs(summed) + mentions[rows, None] + before(mentions[:, None]).squeeze(2)
            return scores

        step = max(1, PAIRS // size)
        chunks = [(begin, min(begin + step, count)) for begin in range(0, count, step)]
        if torch.is_grad_enabled() and len(chunks) > 1:
            scores = [checkpoint(score_rows, *chunk, use_reentrant=False) for chunk in chunks]
        else:
            scores = [score_rows(*chunk) for chunk in chunks]
        exists = torch.arange(count, device=vectors.device)[:, None] >= back
        return torch.cat(scores).masked_fill(~exists, -torch.inf)


def windows(values: Tensor, size: int) -> Tensor:  # (M, X) -> (M, size, X)
    """Return for each row a view of the `size` rows before it, the nearest last; 0 before the first row."""
    return pad(values[:-1], (0, 0, size, 0)).unfold(0, size, 1).transpose(1, 2)


def gold_clusters(spans: Spans, mentions: Tensor, width: int, words: int) -> Tensor:  # (M,)
    """Return the number of each span's cluster, 0 for none.

    Args:
        spans: The spans, of at most `width` words each.
        mentions: (X, 3) first word, last word and number of the cluster, from 1, of each correct mention.
        width: W, words of the widest span.
        words: N, words of the document.
    """
    table = mentions.new_zeros(words, width)
    starts, lasts, numbers = mentions[mentions[:, 1] - mentions[:, 0] < width].unbind(1)
    table[starts, lasts - starts] = numbers
    return table[spans.starts, spans.widths]
