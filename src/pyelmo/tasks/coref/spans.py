"""Spans of a document as tensors: all that may be mentions, the best that do not cross, and clusters from links.

S sentences, T words of a sentence, N words of the document, C candidates, M spans kept, P spans decided at once.
A span is its first and its last word, counted over the document.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 2048  # spans compared with each other at once when the best are kept: bounds memory


class Spans(NamedTuple):
    """First and last words; in order of the first, then of the last."""

    starts: Tensor  # (C,)
    lasts: Tensor  # (C,)

    def at(self, places: Tensor) -> Spans:
        return Spans(self.starts[places], self.lasts[places])

    @property
    def widths(self) -> Tensor:
        """Words more than one."""
        return self.lasts - self.starts


def candidates(mask: Tensor, width: int) -> Spans:
    """Every span of up to `width` words within a sentence of a document (S, T)."""
    lengths = mask.sum(1)
    ends = torch.repeat_interleave(lengths.cumsum(0), lengths)  # (N,) where each word's sentence ends
    starts = torch.arange(len(ends), device=mask.device)[:, None]
    lasts = starts + torch.arange(width, device=mask.device)  # (N, width)
    inside = lasts < ends[:, None]
    return Spans(starts.expand_as(lasts)[inside], lasts[inside])


def keep_best(spans: Spans, scores: Tensor, count: int) -> Tensor:  # (M,)
    """The places of up to `count` spans, in their order: from the best down, those that cross none taken before.

    What Lee et al. (2017) do span by span is done for a block at once: in each round every span goes in that crosses no
    better one still undecided, and what crosses it goes out. Equal scores are taken in order.
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
    """Which spans share words while neither lies in the other."""
    starts, lasts = these.starts[:, None], these.lasts[:, None]
    after = (starts < those.starts) & (those.starts <= lasts) & (lasts < those.lasts)
    before = (those.starts < starts) & (starts <= those.lasts) & (those.lasts < lasts)
    return after | before


def _taken(crossed: Tensor) -> Tensor:  # (P, P), the best first -> (P,)
    better = crossed.tril(-1)
    undecided = torch.ones(len(crossed), dtype=torch.bool, device=crossed.device)
    taken = torch.zeros_like(undecided)
    while undecided.any():
        free = undecided & ~(better & undecided).any(1)
        taken |= free
        undecided &= ~free & ~(better & free).any(1)
    return taken


def roots(links: Tensor) -> Tensor:  # (M,) -> (M,)
    """The first span of each one's chain, where `links` names an earlier span, or the span itself."""
    while True:
        further = links[links]
        if torch.equal(further, links):
            return links
        links = further
