"""A linear-chain conditional random field (CRF): the likelihood of a label sequence, and the best valid sequence.

    score(labels) = start[l_1] + sum_t emissions[t, l_t] + sum_t transitions[l_t, l_t+1] + end[l_T]

B batch, T time steps, K labels. A mask (B, T) is true for the words of a sentence. They come before the padding, and
there must be at least one.
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
    """The transition scores of a CRF. `allowed` (K + 2, K + 2) restricts decoding only, as in Peters et al. (2018)."""

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
        """Return the log likelihood (B,) of labels (B, T), given emissions (B, T, K) and the mask (B, T)."""
        score = sequence_score(emissions, labels, mask, self.transitions, self.start, self.end)
        return score - log_partition(emissions, mask, self.transitions, self.start, self.end)

    def decode(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """Return the label ids of the best sequence of each sentence."""
        return viterbi(emissions, mask, self.transitions, self.start, self.end, self.allowed)


def sequence_score(
    emissions: Tensor, labels: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor
) -> Tensor:
    labels = labels.masked_fill(~mask, 0)  # the ids of padding may be out of range, such as -100
    chosen = emissions.gather(2, labels.unsqueeze(2)).squeeze(2)  # (B, T)
    steps = transitions[labels[:, :-1], labels[:, 1:]]  # (B, T - 1)
    last = labels.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)  # (B,)
    inner = chosen.masked_fill(~mask, 0).sum(1) + steps.masked_fill(~mask[:, 1:], 0).sum(1)
    return start[labels[:, 0]] + inner + end[last]


def log_partition(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Return the log of the sum of exp(score) over all label sequences (B,), by the forward algorithm."""
    total: Tensor = _LogPartition.apply(emissions, mask, transitions, start, end)  # type: ignore[no-untyped-call]
    return total


class _LogPartition(torch.autograd.Function):
    """The forward and backward algorithms in one loop over time, so that the gradient needs no loop of its own.

    The gradients are marginal probabilities: of a label at a word, and of two labels at a word and the next one.
    """

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor
    ) -> Tensor:  # (B,)
        steps = torch.arange(mask.shape[1], device=mask.device)
        lasts = mask.sum(1, keepdim=True) - 1  # (B, 1)
        reversed_steps = (lasts - steps).clamp(min=0)[..., None].expand_as(emissions)  # each sentence from its end
        values = torch.stack([emissions, emissions.gather(1, reversed_steps)]).transpose(0, 2)  # (T, B, 2, K)
        first, *others = values.unbind(0)
        both_transitions = torch.stack([transitions, transitions.T])  # (2, K, K)
        total = torch.stack([start, end]) + first  # (B, 2, K): over all sequences that end with a label at this step
        totals = [total]
        for step in others:  # totals after the end of a sentence are not used
            total = (total.unsqueeze(3) + both_transitions).logsumexp(2) + step
            totals.append(total)
        forward, backward = torch.stack(totals, 1).unbind(2)  # (B, T, K) each
        backward = backward.gather(1, reversed_steps)
        last_totals = forward.gather(1, lasts[..., None].expand(-1, 1, len(start))).squeeze(1)  # (B, K)
        partition = (last_totals + end).logsumexp(1)
        ctx.save_for_backward(emissions, mask, transitions, forward, backward, lasts, partition)
        return partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        emissions, mask, transitions, forward, backward, lasts, partition = ctx.saved_tensors
        grad = grad[:, None, None]
        labels = (forward + backward - emissions).softmax(2).mul(grad).masked_fill(~mask.unsqueeze(2), 0.0)  # (B, T, K)
        scores = forward[:, :-1, :, None] + transitions + backward[:, 1:, None, :] - partition[:, None, None, None]
        pairs = scores.exp().mul(grad[..., None]).masked_fill(~mask[:, 1:, None, None], 0.0)  # (B, T - 1, K, K)
        ends = labels.gather(1, lasts[..., None].expand(-1, 1, labels.shape[2]))
        return labels, None, pairs.sum((0, 1)), labels[:, 0].sum(0), ends.sum((0, 1))


def restrict(transitions: Tensor, start: Tensor, end: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores with minus infinity where `allowed` (K + 2, K + 2) forbids a label to follow another.

    An emission could outweigh any finite penalty.
    """
    if allowed is None:
        return transitions, start, end
    labels = len(start)
    forbidden = ~allowed.to(start.device)
    return (
        transitions.masked_fill(forbidden[:labels, :labels], -torch.inf),
        start.masked_fill(forbidden[labels, :labels], -torch.inf),
        end.masked_fill(forbidden[:labels, labels + 1], -torch.inf),
    )


@torch.no_grad()
def viterbi(
    emissions: Tensor,
    mask: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    allowed: Tensor | None = None,
) -> list[list[int]]:
    """Return the best label sequence of each sentence among those that `allowed` (K + 2, K + 2) permits."""
    labels = emissions.shape[2]
    transitions, start, end = restrict(transitions, start, end, allowed)
    first, *others = emissions.unbind(1)
    bests, origins = [start + first], []  # (B, K): the score of the best sequence up to a label, and the label before
    for step in others:  # scores after the end of a sentence are not used
        score, origin = (bests[-1].unsqueeze(2) + transitions).max(1)
        bests.append(score + step)
        origins.append(origin)
    counts = mask.sum(1, keepdim=True)  # (B, 1)
    lasts = (counts - 1).unsqueeze(2).expand(-1, 1, labels)
    label = (torch.stack(bests, 1).gather(1, lasts).squeeze(1) + end).argmax(1, keepdim=True)  # (B, 1)
    path = [label]
    for is_word, origin in zip(reversed(mask.unsqueeze(2).unbind(1)[1:]), reversed(origins), strict=True):
        label = torch.where(is_word, origin.gather(1, label), label)
        path.append(label)
    rows = torch.cat([counts, *reversed(path)], 1).tolist()
    return [labels[:count] for count, *labels in rows]


def allowed_transitions(labels: Sequence[str], scheme: str) -> Tensor:
    """Return which label may follow which: (K + 2, K + 2) bool, [from, to], where K is the start and K + 1 the end."""
    parts = [split_label(label, scheme) for label in labels]
    count = len(parts)
    allowed = torch.zeros(count + 2, count + 2, dtype=torch.bool, device="cpu")  # also if a model is built elsewhere
    follows = _FOLLOWS[scheme]
    outside = ("O", "")
    # The start and the end of a sentence behave like O.
    for row, before in enumerate([*parts, outside]):
        for column, after in enumerate([*parts, outside]):
            column = count + 1 if column == count else column
            allowed[row, column] = follows(before, after)
    allowed[count, count + 1] = False
    # Without a label that may begin, repeat and end, sentences of some lengths would have no valid sequence.
    alone = allowed[count, :count] & allowed[:count, count + 1] & allowed[:count, :count].diagonal()
    if not alone.any():
        raise InputError(f"labels {', '.join(labels)}: no label of {scheme} can stand alone. Add the label O.")
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
