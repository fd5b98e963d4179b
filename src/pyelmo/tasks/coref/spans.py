"""Spans of a document as tensors: all candidates, the best that do not cross, and clusters from links.

S sentences, T positions of a sentence, N words of the document, C candidates, M kept spans, P and Q spans compared.
A span is its first and its last word, numbered over the document.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 2048  # spans compared with each other at once, which bounds memory


class Spans(NamedTuple):
    """First and last words of spans, sorted by the first, then by the last."""

    starts: Tensor  # (C,)
    lasts: Tensor  # (C,)

    def at(self, rows: Tensor) -> Spans:
        return Spans(self.starts[rows], self.lasts[rows])

    @property
    def widths(self) -> Tensor:
        """The number of words, less one."""
        return self.lasts - self.starts


def candidates(mask: Tensor, width: int) -> Spans:
    """Return every span of up to `width` words inside the sentences of a document with mask (S, T)."""
    lengths = mask.sum(1)
    ends = torch.repeat_interleave(lengths.cumsum(0), lengths)  # (N,) the end of each word's sentence
    starts = torch.arange(len(ends), device=mask.device)[:, None]
    lasts = starts + torch.arange(width, device=mask.device)  # (N, width)
    inside = lasts < ends[:, None]
    return Spans(starts.expand_as(lasts)[inside], lasts[inside])


def keep_best(spans: Spans, scores: Tensor, count: int) -> Tensor:  # (M,)
    """Return the rows, in order, of up to `count` spans: from the best down, those that cross no span already taken.

    Lee et al. (2017) decide span by span; this decides a block at once. In each round it takes every span that crosses
    no better undecided one, and drops the spans that cross a taken one. Spans of equal score are taken in order.
    """
    order = scores.detach().sort(descending=True, stable=True).indices
    kept = order[:0]
    for block in order.split(BLOCK):
        if len(kept) >= count:
            break
        block = block[~crossing(spans.at(block), spans.at(kept)).any(1)]
        kept = torch.cat([kept, block[_taken(crossing(spans.at(block), spans.at(block)))]])
    return kept[:count].sort().values


def crossing(these: Spans, those: Spans) -> Tensor:  # (P,), (Q,) -> (P, Q)
    """Return which pairs of spans share words although neither contains the other."""
    starts, lasts = these.starts[:, None], these.lasts[:, None]
    after = (starts < those.starts) & (those.starts <= lasts) & (lasts < those.lasts)
    before = (those.starts < starts) & (starts <= those.lasts) & (those.lasts < lasts)
    return after | before


def _taken(crossed: Tensor) -> Tensor:  # (P, P) -> (P,)
    """Return which spans of a block are taken, given which of them cross; the spans are sorted, the best first."""
    better = crossed.tril(-1)
    undecided = torch.ones(len(crossed), dtype=torch.bool, device=crossed.device)
    taken = torch.zeros_like(undecided)
    while undecided.any():
        free = undecided & ~(better & undecided).any(1)
        taken |= free
        undecided &= ~free & ~(better & free).any(1)
    return taken


def roots(links: Tensor) -> Tensor:  # (M,) -> (M,)
    """Return the first span of each span's chain; `links` are rows of earlier spans, or of the span itself."""
    while True:
        further = links[links]
        if torch.equal(further, links):
            return links
        links = further
