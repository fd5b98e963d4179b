"""Functions for tasks that predict one label for a whole example.

B batch, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyelmo.tasks.answers import LabelAnswer
from pyelmo.tasks.harness.task import Example, NetworkInputs, Prediction, Vocabularies


class OneLabelModule(nn.Module):
    """The loss and the predictions of a task's module, which computes `scores` from its network."""

    labels: Sequence[str]

    def scores(self, *texts: NetworkInputs) -> Tensor:  # -> (B, K)
        raise NotImplementedError

    def loss(self, *texts: NetworkInputs) -> Tensor:
        scores = self.scores(*texts)
        gold = torch.tensor([self.labels.index(example.labels[0]) for example in texts[0].examples])
        return nn.functional.cross_entropy(scores, gold.to(scores.device, non_blocking=True))

    def predict(self, *texts: NetworkInputs) -> list[Prediction]:
        return self.decide(texts[0].examples, self.probabilities(*texts))

    def answer(self, *texts: NetworkInputs) -> list[LabelAnswer]:
        examples, probabilities = texts[0].examples, self.probabilities(*texts)
        return [
            LabelAnswer(
                texts=example.texts,
                labels=labels,
                offsets=example.given.offsets,
                probabilities=dict(zip(self.labels, values.tolist(), strict=True)),
            )
            for example, labels, values in zip(
                examples, self.decide(examples, probabilities), probabilities, strict=True
            )
        ]

    def probabilities(self, *texts: NetworkInputs) -> list[Tensor]:
        """Return the probabilities of the labels (K,) for each example."""
        return list(self.scores(*texts).softmax(1))

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Prediction]:
        return [(self.labels[number],) for number in torch.stack(list(probabilities)).argmax(1).tolist()]


def build_vocabularies(examples: Sequence[Example]) -> Vocabularies:
    return {"labels": tuple(sorted({label for example in examples for label in example.labels}))}


def count(example: Example, prediction: Prediction) -> tuple[int, ...]:
    """Return 1 or 0 for a correct or wrong prediction, and 1 for the example."""
    return int(example.labels == prediction), 1
