"""A linear-chain conditional random field: the score of a whole sequence of labels, and the best valid one.

    score(labels) = start[l_1] + sum_t emissions[t, l_t] + sum_t transitions[l_t, l_t+1] + end[l_T]

B batch, T time, K labels. A mask (B, T) is true for the words of a sentence, of which there must be one at least, and
they come first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyelmo.errors import InputError
from pyelmo.tasks.spans import split_label


class CRF(nn.Module):
    """Transition scores to learn; `allowed` (K + 2, K + 2) is heeded in decoding, as in Peters et al. (2018)."""

    allowed: Tensor | None

    def __init__(self, labels: int, allowed: Tensor | None = None) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(labels, labels))
        self.start = nn.Parameter(torch.empty(labels))
        self.end = nn.Parameter(torch.empty(labels))
        self.register_buffer("allowed", allowed, persistent=False)
        nn.init.xavier_normal_(self.transitions)
        nn.init.normal_(self.start)
        nn.init.normal_(self.end)

    def forward(self, emissions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """The log likelihood (B,) of labels (B, T) given emissions (B, T, K); where `mask` is false nothing counts."""
        score = sequence_score(emissions, labels, mask, self.transitions, self.start, self.end)
        return score - log_partition(emissions, mask, self.transitions, self.start, self.end)

    def decode(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best label numbers of each sentence."""
        return viterbi(emissions, mask, self.transitions, self.start, self.end, self.allowed)


def sequence_score(
    emissions: Tensor, labels: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor
) -> Tensor:
    labels = labels.masked_fill(~mask, 0)  # whatever stands for padding, -100 for one
    chosen = emissions.gather(2, labels.unsqueeze(2)).squeeze(2)  # (B, T)
    steps = transitions[labels[:, :-1], labels[:, 1:]]  # (B, T - 1)
    last = labels.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)  # (B,)
    inner = chosen.masked_fill(~mask, 0).sum(1) + steps.masked_fill(~mask[:, 1:], 0).sum(1)
    return start[labels[:, 0]] + inner + end[last]


def log_partition(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """log sum exp of the scores of all sequences (B,): the forward algorithm."""
    total = start + emissions[:, 0]  # (B, K): of all sequences that end in a label here
    for step in range(1, emissions.shape[1]):
        longer = (total.unsqueeze(2) + transitions).logsumexp(1) + emissions[:, step]
        total = torch.where(mask[:, step, None], longer, total)
    return (total + end).logsumexp(1)


@torch.no_grad()
def viterbi(
    emissions: Tensor,
    mask: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    allowed: Tensor | None = None,
) -> list[list[int]]:
    """The best sequence of each sentence among those that `allowed` (K + 2, K + 2) permits."""
    labels = emissions.shape[2]
    if allowed is not None:  # minus infinity, not a large number: no emission can outweigh it
        never = ~allowed.to(emissions.device)
        transitions = transitions.masked_fill(never[:labels, :labels], -torch.inf)
        start = start.masked_fill(never[labels, :labels], -torch.inf)
        end = end.masked_fill(never[:labels, labels + 1], -torch.inf)
    here = torch.arange(labels, device=emissions.device)
    best = start + emissions[:, 0]  # (B, K): of the best sequence that ends in a label here
    origins = []  # for each step but the first, the label before (B, K)
    for step in range(1, emissions.shape[1]):
        score, origin = (best.unsqueeze(2) + transitions).max(1)
        live = mask[:, step, None]
        best = torch.where(live, score + emissions[:, step], best)
        origins.append(torch.where(live, origin, here))
    label = (best + end).argmax(1, keepdim=True)  # (B, 1)
    path = [label]
    for origin in reversed(origins):
        label = origin.gather(1, label)
        path.append(label)
    paths = torch.cat(path[::-1], 1).tolist()
    return [path[:length] for path, length in zip(paths, mask.sum(1).tolist(), strict=True)]


def allowed_transitions(labels: Sequence[str], scheme: str) -> Tensor:
    """Which label may follow which: (K + 2, K + 2) bool, [from, to], where K is the start and K + 1 the end."""
    parts = [split_label(label, scheme) for label in labels]
    count = len(parts)
    allowed = torch.zeros(count + 2, count + 2, dtype=torch.bool)
    follows = _FOLLOWS[scheme]
    outside = ("O", "")
    for row, before in enumerate([*parts, outside]):  # a sentence begins and ends as if O stood around it
        for column, after in enumerate([*parts, outside]):
            end = column == count
            allowed[row, column + end] = follows(before, after)
    allowed[count, count + 1] = False
    # Only sets from which no sentence can be labelled fail here, or some lengths of it: then the best would be invalid.
    alone = allowed[count, :count] & allowed[:count, count + 1] & allowed[:count, :count].diagonal()
    if not alone.any():
        raise InputError(f"labels {', '.join(labels)}: none of {scheme} can stand alone. Is O missing?")
    return allowed


_Part = tuple[str, str]


def _follows_bio(before: _Part, after: _Part) -> bool:
    return after[0] != "I" or before[1] == after[1]


def _follows_iob1(before: _Part, after: _Part) -> bool:
    return after[0] != "B" or before[1] == after[1]


def _follows_bioul(before: _Part, after: _Part) -> bool:
    if before[0] in "BI":
        return after[0] in "IL" and before[1] == after[1]
    return after[0] in "OBU"


_FOLLOWS = {"bio": _follows_bio, "iob1": _follows_iob1, "bioul": _follows_bioul}
