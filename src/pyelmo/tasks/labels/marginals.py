"""How probable a span is, given the scores of a CRF: the forward and backward algorithms over valid sequences.

    P(labels l_s .. l_e) = exp(forward[s, l_s] + transitions and emissions between + backward[e, l_e] - log partition)

B batch, T time steps, K labels. The sum is over the sequences among which decoding chooses, so invalid ones do not
count, although training does not forbid them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from pyelmo.tasks.labels.crf import restrict
from pyelmo.tasks.labels.spans import Span, to_spans


class Marginals:
    """The totals of the forward and backward algorithms for a batch of sentences."""

    @torch.no_grad()
    def __init__(
        self, emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor, allowed: Tensor | None
    ) -> None:
        """Compute the totals of emissions (B, T, K) with a mask (B, T). The others are those of `crf.viterbi`."""
        emissions, mask = emissions.double().cpu(), mask.cpu()
        weights = restrict(transitions, start, end, allowed)
        self.transitions, start, end = (values.double().cpu() for values in weights)
        steps = emissions.unbind(1)
        totals = [start + steps[0]]  # (B, K) over all sequences up to a label, its emission included
        for step in steps[1:]:
            totals.append((totals[-1].unsqueeze(2) + self.transitions).logsumexp(1) + step)
        rests = [end.expand_as(totals[0])]  # (B, K) over all sequences after a label, its emission excluded
        for step, is_word in zip(reversed(steps[1:]), reversed(mask.unbind(1)[1:]), strict=True):
            rest = (self.transitions + (step + rests[-1]).unsqueeze(1)).logsumexp(2)
            rests.append(torch.where(is_word.unsqueeze(1), rest, end))
        self.emissions = emissions
        self.forward, self.backward = torch.stack(totals, 1), torch.stack(rests[::-1], 1)  # (B, T, K)
        self.partition = (self.forward[:, 0] + self.backward[:, 0]).logsumexp(1)  # (B,)
        self.lengths = mask.sum(1).tolist()

    def probability(self, row: int, first: int, numbers: Sequence[int]) -> float:
        """Return the probability that the words from `first` on have these labels."""
        last = first + len(numbers) - 1
        total = self.forward[row, first, numbers[0]] + self.backward[row, last, numbers[-1]] - self.partition[row]
        for position, (before, after) in enumerate(pairwise(numbers), first + 1):
            total = total + self.transitions[before, after] + self.emissions[row, position, after]
        return math.exp(total)

    def spans(self, row: int, path: Sequence[int], labels: Sequence[str], scheme: str) -> list[tuple[Span, float]]:
        """Return the spans of a label sequence, each with the probability of exactly this span."""
        results = []
        for span in to_spans([labels[number] for number in path], scheme):
            numbers = list(path[span.start : span.end])
            value = self.probability(row, span.start, numbers)
            inside = f"I-{span.label}"
            if scheme == "bio" and span.end < self.lengths[row] and inside in labels:  # the span could be longer
                value -= self.probability(row, span.start, [*numbers, labels.index(inside)])
            results.append((span, min(max(value, 0.0), 1.0)))
        return results
