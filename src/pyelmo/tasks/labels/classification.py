"""What tasks share whose answer is one label for a whole example.

B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyelmo.tasks.harness.task import Example, Prediction, Vocabularies


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    return {"labels": tuple(sorted({label for example in examples for label in example.labels}))}


def loss(scores: Tensor, examples: Sequence[Example], labels: Sequence[str]) -> Tensor:  # (B, K) -> ()
    wanted = torch.tensor([labels.index(example.labels[0]) for example in examples])
    return nn.functional.cross_entropy(scores, wanted.to(scores.device, non_blocking=True))


def decide(probabilities: Sequence[Tensor], labels: Sequence[str]) -> list[Prediction]:  # (K,) each
    return [(labels[number],) for number in torch.stack(list(probabilities)).argmax(1).tolist()]


def count(example: Example, given: Prediction) -> tuple[int, ...]:
    return int(example.labels == given), 1
