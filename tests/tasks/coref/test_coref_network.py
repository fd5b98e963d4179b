"""The span ranker equals its equations span by span, in bounded memory, whatever the padding and the chunks."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import TOLERANCE
from torch.nn.functional import pad

from pyelmo.tasks.coref import network as coref_network
from pyelmo.tasks.coref import spans as coref_spans
from pyelmo.tasks.coref.network import CorefNetwork, Ranking, gold_clusters, windows
from pyelmo.tasks.coref.spans import Spans, candidates, crossing, keep_best, roots

LENGTHS = (5, 1, 7, 4)
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
SPEAKERS = torch.tensor([1] * 5 + [0] * 4 + [2] * 4 + [1] * 4)
MENTIONS = torch.tensor([[0, 0, 1], [2, 3, 1], [6, 6, 2], [8, 9, 1], [13, 13, 2], [15, 16, 1], [6, 11, 3]])
EXACT = TOLERANCE[torch.float64]


def make(extra=0, **changes):
    torch.manual_seed(0)
    sizes = {"hidden": 4, "scorer": 5, "feature": 3, "width": 4, "ratio": 0.8, "antecedents": 6, "genres": 3}
    network = CorefNetwork(6, extra=extra, **{**sizes, **changes}).double().eval()
    inputs, joined = torch.randn(4, 7, 6).double(), torch.randn(4, 7, 2).double()
    return network, inputs.requires_grad_(), joined.requires_grad_() if extra else None


def apply(scorer, parts):
    """Apply a feed-forward net to one vector that is joined from its parts."""
    state = torch.relu(scorer.first(torch.cat(parts)))
    for layer in scorer.others:
        state = torch.relu(layer(state))
    return scorer.score(state)[0]


def greedy(starts, lasts, scores, count):
    """Apply the rule of Lee et al. span by span."""
    taken = []
    for place in sorted(range(len(scores)), key=lambda place: (-scores[place], place)):
        crosses = any(
            starts[place] < starts[one] <= lasts[place] < lasts[one]
            or starts[one] < starts[place] <= lasts[one] < lasts[place]
            for one in taken
        )
        if not crosses and len(taken) < count:
            taken.append(place)
    return sorted(taken)


def bucket(distance):
    return next((n for n, limit in enumerate((1, 2, 3, 4, 7, 15, 31, 63)) if distance <= limit), 8)


def naive(network, inputs, mask, extra, speakers, genre):
    """Return the kept spans and a dict of the scores of each pair, by loops and whole vectors."""
    states = network.lstm(inputs, mask)
    states = states if extra is None else torch.cat([states, extra], 2)
    words, inputs = states[mask], inputs[mask]
    attention = [apply(network.heads, [word]) for word in words]
    spans, begin = [], 0
    for length in mask.sum(1).tolist():
        for start in range(begin, begin + length):
            spans += [(start, last) for last in range(start, min(start + network.width, begin + length))]
        begin += length
    parts, mentions = [], []
    for start, last in spans:
        weights = torch.stack(attention[start : last + 1]).softmax(0)
        head = sum(weight * inputs[start + place] for place, weight in enumerate(weights))
        parts.append([words[start], words[last], head, network.widths.weight[last - start]])
        mentions.append(apply(network.mentions, parts[-1]))
    starts, lasts = zip(*spans, strict=True)
    kept = greedy(starts, lasts, [score.item() for score in mentions], max(1, int(network.ratio * len(words))))
    vectors = [torch.cat(parts[place]) for place in kept]
    scores = {}
    for row, place in enumerate(kept):
        for other in range(max(0, row - network.antecedents), row):
            mine, theirs = speakers[starts[place]], speakers[starts[kept[other]]]
            relation = 0 if not (mine and theirs) else 1 if mine == theirs else 2
            features = [
                network.distances.weight[bucket(row - other)],
                network.speakers.weight[relation],
                network.genres.weight[genre],
            ]
            pair = apply(network.pairs, [vectors[row], vectors[other], vectors[row] * vectors[other], *features])
            scores[row, other] = pair + mentions[place] + mentions[kept[other]]
    return [spans[place] for place in kept], scores


def naive_loss(spans, scores, cluster_of):
    total = 0.0
    for row, span in enumerate(spans):
        earlier = {other: scores[row, other] for other in range(row) if (row, other) in scores}
        mine = cluster_of.get(span)
        right = [score for other, score in earlier.items() if mine and cluster_of.get(spans[other]) == mine]
        nothing = torch.zeros((), dtype=torch.float64)
        everything = torch.stack([nothing, *earlier.values()]).logsumexp(0)
        total = total + everything - torch.stack(right or [nothing]).logsumexp(0)
    return total


@pytest.mark.parametrize("extra", [0, 2])
@pytest.mark.parametrize("pairs", [1, 20, 1 << 14])  # chunks of one row, of a few, and of all
def test_scores_loss_and_gradients_are_those_of_loops(extra, pairs, monkeypatch):
    monkeypatch.setattr(coref_network, "PAIRS", pairs)
    network, inputs, joined = make(extra)
    leaves = [inputs, *([joined] if extra else []), *network.parameters()]
    ranking = network(inputs, MASK, joined, SPEAKERS, 2)
    spans, scores = naive(network, inputs, MASK, joined, SPEAKERS.tolist(), 2)
    assert torch.stack(list(ranking.spans), 1).tolist() == [list(span) for span in spans]
    for (row, other), score in scores.items():
        assert torch.allclose(ranking.scores[row, other - row], score, rtol=0, atol=EXACT)
    assert int(ranking.scores.isfinite().sum()) == len(scores)
    loss = ranking.loss(gold_clusters(ranking.spans, MENTIONS, network.width, int(MASK.sum())))
    cluster_of = {(start, last): number for start, last, number in MENTIONS.tolist()}
    want = naive_loss(spans, scores, cluster_of)
    assert torch.allclose(loss, want, rtol=0, atol=EXACT)
    gradients, wanted = (torch.autograd.grad(value, leaves, retain_graph=True) for value in (loss, want))
    for got, right in zip(gradients, wanted, strict=True):
        assert torch.allclose(got, right, rtol=0, atol=EXACT)
        assert got.any()


def test_chunks_change_nothing_in_training_either(monkeypatch):
    losses, gradients = [], []
    for pairs in (1, 7, 1 << 14):
        monkeypatch.setattr(coref_network, "PAIRS", pairs)
        network, inputs, _ = make(dropout=0.0)
        network.train()
        ranking = network(inputs, MASK)
        losses.append(ranking.loss(gold_clusters(ranking.spans, MENTIONS, network.width, int(MASK.sum()))))
        gradients.append(torch.autograd.grad(losses[-1], inputs)[0])
    for loss, gradient in zip(losses, gradients, strict=True):
        assert torch.allclose(loss, losses[0], rtol=0, atol=EXACT)
        assert torch.allclose(gradient, gradients[0], rtol=0, atol=EXACT)


def test_padding_never_changes_a_result_whatever_it_holds():
    network, inputs, joined = make(2)
    want = network(inputs, MASK, joined)
    for filling in (0.0, 1e3, float("nan")):
        wide, more = (pad(tensor.detach(), (0, 0, 0, 3)) for tensor in (inputs, joined))
        mask = pad(MASK, (0, 3))
        wide[~mask], more[~mask] = filling, filling
        got = network(wide, mask, more)
        assert torch.equal(got.spans.starts, want.spans.starts)
        assert torch.allclose(got.scores, want.scores, rtol=0, atol=EXACT)


def test_dropout_is_for_training_alone():
    network, inputs, _ = make()
    assert torch.equal(network(inputs, MASK).scores, network(inputs, MASK).scores)
    network.train()
    torch.manual_seed(1)
    assert not torch.equal(network(inputs, MASK).mentions, network(inputs, MASK).mentions)


def test_candidates_stay_within_their_sentences():
    starts, lasts = candidates(torch.tensor([[True, True, True], [True, False, False]]), 2)
    assert list(zip(starts.tolist(), lasts.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (3, 3)]


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 30), st.integers(1, 8), st.integers(0, 2**31))
def test_the_best_spans_are_those_of_the_greedy_rule(words, width, count, block, seed):
    torch.manual_seed(seed)
    spans = candidates(torch.ones(1, words, dtype=torch.bool), width)
    scores = torch.randint(0, 50, spans.starts.shape).float()  # many of them equal
    before, coref_spans.BLOCK = coref_spans.BLOCK, block * 7
    try:
        kept = keep_best(spans, scores, count)
    finally:
        coref_spans.BLOCK = before
    assert kept.tolist() == greedy(spans.starts.tolist(), spans.lasts.tolist(), scores.tolist(), count)
    assert not crossing(spans.at(kept), spans.at(kept)).any()


def test_windows_are_the_rows_before_each():
    assert windows(torch.tensor([[1], [2], [3]]), 2).squeeze(2).tolist() == [[0, 0], [0, 1], [1, 2]]


def test_chains_of_links_become_clusters_that_share_nothing():
    torch.manual_seed(0)
    assert roots(torch.tensor([0, 0, 1, 3, 2, 3])).tolist() == [0, 0, 0, 3, 0, 3]
    for _ in range(20):
        count, size = 30, 7
        scores = torch.randn(count, size)
        scores = scores.masked_fill(torch.arange(count)[:, None] < torch.arange(size, 0, -1), -torch.inf)
        rows = torch.arange(count)
        ranking = Ranking(Spans(rows, rows), torch.zeros(count), scores)
        links = ranking.links()
        assert (links <= rows).all()
        clusters = ranking.clusters()
        mentions = [mention for cluster in clusters for mention in cluster]
        assert len(set(mentions)) == len(mentions)
        together = {mention: number for number, cluster in enumerate(clusters) for mention in cluster}
        for place, link in enumerate(links.tolist()):
            if link != place:
                assert together[place, place] == together[link, link]
        assert all(len(cluster) > 1 and cluster == sorted(cluster) for cluster in clusters)


def test_a_document_of_one_word_has_a_span_and_no_cluster():
    network, inputs, _ = make()
    ranking = network(inputs[:1, :1], MASK[:1, :1])
    assert ranking.scores.tolist() == [[-float("inf")]]
    assert ranking.clusters() == []
    loss = ranking.loss(torch.tensor([1]))
    assert loss.item() == 0
    assert loss.requires_grad


def test_mentions_wider_than_any_candidate_are_none_of_the_clusters():
    spans = Spans(torch.tensor([0, 2]), torch.tensor([0, 3]))
    mentions = torch.tensor([[0, 5, 1], [2, 3, 2]])
    assert gold_clusters(spans, mentions, 3, 8).tolist() == [0, 2]
    assert gold_clusters(spans, torch.zeros(0, 3, dtype=torch.long), 3, 8).tolist() == [0, 0]


def test_it_learns_a_document():
    """The mentions are single words: a span that crosses a better one at first is never scored, and so never learnt."""
    network, inputs, _ = make(dropout=0.0, ratio=3.0, antecedents=60, hidden=16, scorer=20)
    inputs, mentions = inputs.detach(), torch.tensor([[0, 0, 1], [5, 5, 1], [7, 7, 2], [12, 12, 1], [15, 15, 2]])
    optimiser = torch.optim.Adam(network.train().parameters(), lr=0.01)
    for _ in range(100):
        ranking = network(inputs, MASK)
        loss = ranking.loss(gold_clusters(ranking.spans, mentions, network.width, int(MASK.sum())))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert network.eval()(inputs, MASK).clusters() == [[(0, 0), (5, 5), (12, 12)], [(7, 7), (15, 15)]]


LONG = """
import resource, torch
from pyelmo.tasks.coref.network import CorefNetwork
torch.manual_seed(0)
torch.set_num_threads(2)
network = CorefNetwork(300, hidden=100, scorer=50, width=20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sentences = torch.ones(160, 25, dtype=torch.bool)
with torch.no_grad():
    ranking = network.eval()(torch.randn(160, 25, 300), sentences)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(ranking.spans.starts), ranking.scores.shape[1], (peak - before) // 1024)
"""


def test_a_document_of_4000_words_takes_bounded_memory():
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)
    spans, antecedents, megabytes = map(int, done.stdout.split())
    assert (spans, antecedents) == (1600, 250)
    assert megabytes < 400  # measured: 126; the vectors of all pairs would be 1,100, the words of all candidates 1,500


def test_the_probability_of_a_link_is_that_of_the_best_antecedent_or_of_none():
    rows = torch.arange(3)
    scores = torch.tensor([[-torch.inf, -torch.inf], [-torch.inf, 2.0], [-1.0, -3.0]])
    ranking = Ranking(Spans(rows, rows), torch.zeros(3), scores)
    assert ranking.links().tolist() == [0, 0, 2]
    wanted = [1, math.exp(2) / (1 + math.exp(2)), 1 / (1 + math.exp(-1) + math.exp(-3))]
    assert ranking.link_probabilities().tolist() == pytest.approx(wanted)
