"""A linear-chain conditional random field: the score of a whole sequence of labels, and the best valid one.

    score(labels) = start[l_1] + sum_t emissions[t, l_t] + sum_t transitions[l_t, l_t+1] + end[l_T]

B batch, T time, K labels. A mask (B, T) is true for the words of a sentence, of which there must be one at least, and
they come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pyelmo.errors import InputError
from pyelmo.tasks.labels.spans import split_label


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
    found: Tensor = _LogPartition.apply(emissions, mask, transitions, start, end)  # type: ignore[no-untyped-call]
    return found


class _LogPartition(torch.autograd.Function):
    """Forwards and backwards through each sentence in the same few calls a step, so that its gradient has no steps.

    The gradients are probabilities: of a label at a word, and of two labels at a word and the next.
    """

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor
    ) -> Tensor:  # (B,)
        steps = torch.arange(mask.shape[1], device=mask.device)
        lasts = mask.sum(1, keepdim=True) - 1  # (B, 1)
        turned = (lasts - steps).clamp(min=0)[..., None].expand_as(emissions)  # where each step is from the end
        values = torch.stack([emissions, emissions.gather(1, turned)]).transpose(0, 2)  # (T, B, 2, K)
        first, *others = values.unbind(0)
        ways = torch.stack([transitions, transitions.T])  # (2, K, K)
        total = torch.stack([start, end]) + first  # (B, 2, K): of all sequences so far that end in a label here
        totals = [total]
        for step in others:  # beyond a sentence's end they mean nothing, and are not looked at
            total = (total.unsqueeze(3) + ways).logsumexp(2) + step
            totals.append(total)
        before, after = torch.stack(totals, 1).unbind(2)  # (B, T, K) each
        after = after.gather(1, turned)
        whole = before.gather(1, lasts[..., None].expand(-1, 1, len(start))).squeeze(1)  # (B, K)
        found = (whole + end).logsumexp(1)
        ctx.save_for_backward(emissions, mask, transitions, before, after, lasts, found)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        emissions, mask, transitions, before, after, lasts, found = ctx.saved_tensors
        grad = grad[:, None, None]
        one = (before + after - emissions).softmax(2).mul(grad).masked_fill(~mask.unsqueeze(2), 0.0)  # (B, T, K)
        pairs = before[:, :-1, :, None] + transitions + after[:, 1:, None, :] - found[:, None, None, None]
        two = pairs.exp().mul(grad[..., None]).masked_fill(~mask[:, 1:, None, None], 0.0)  # (B, T - 1, K, K)
        ends = one.gather(1, lasts[..., None].expand(-1, 1, one.shape[2]))
        return one, None, two.sum((0, 1)), one[:, 0].sum(0), ends.sum((0, 1))


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
    first, *others = emissions.unbind(1)
    bests, origins = [start + first], []  # (B, K): of the best sequence that ends in a label here, and the label before
    for step in others:  # beyond a sentence's end they mean nothing
        score, origin = (bests[-1].unsqueeze(2) + transitions).max(1)
        bests.append(score + step)
        origins.append(origin)
    counts = mask.sum(1, keepdim=True)  # (B, 1)
    lasts = (counts - 1).unsqueeze(2).expand(-1, 1, labels)
    label = (torch.stack(bests, 1).gather(1, lasts).squeeze(1) + end).argmax(1, keepdim=True)  # (B, 1)
    path = [label]
    for live, origin in zip(reversed(mask.unsqueeze(2).unbind(1)[1:]), reversed(origins), strict=True):
        label = torch.where(live, origin.gather(1, label), label)
        path.append(label)
    found = torch.cat([counts, *reversed(path)], 1).tolist()
    return [path[:count] for count, *path in found]


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
