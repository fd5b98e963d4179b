"""Whether a text follows from another, contradicts it, or neither (Chen et al. 2017): ESIM, scored by accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torch import Tensor, nn

from pyelmo.tasks.harness.metrics import ACCURACY
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.task import EMPTY_TEXT, Example, InputSizes, NetworkInputs, Prediction, Task, Vocabularies
from pyelmo.tasks.labels import classification
from pyelmo.tasks.nli.data import read_pairs
from pyelmo.tasks.nli.network import EsimNetwork


@dataclass(frozen=True, kw_only=True)
class NliData(DataSettings):
    format: Literal["jsonl", "json", "tsv", "csv", "lines"] = "jsonl"
    tokenised: bool = False  # the texts are split by the language's rules already, with spaces between


@dataclass(frozen=True, kw_only=True)
class NliNetwork:
    hidden: int = 300
    dropout: float = 0.5


@dataclass(frozen=True, kw_only=True)
class NliRecipe(TaskRecipe):
    data: NliData = field(default_factory=NliData)
    network: NliNetwork = field(default_factory=NliNetwork)


def read(path: Path, data: NliData, training: bool) -> list[Example]:
    pairs = read_pairs(path, data.format, data.language, tokenised=data.tokenised)
    return [Example((pair.premise or EMPTY_TEXT, pair.hypothesis or EMPTY_TEXT), (pair.label,)) for pair in pairs]


class Entailment(nn.Module):
    """One label for each premise and hypothesis."""

    def __init__(self, recipe: NliRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.esim = EsimNetwork(
            sizes.input, len(self.labels), hidden=settings.hidden, dropout=settings.dropout, extra=sizes.output
        )

    def loss(self, premises: NetworkInputs, hypotheses: NetworkInputs) -> Tensor:
        return classification.loss(self._scores(premises, hypotheses), premises.examples, self.labels)

    def predict(self, premises: NetworkInputs, hypotheses: NetworkInputs) -> list[Prediction]:
        return self.decide(premises.examples, self.probabilities(premises, hypotheses))

    def probabilities(self, premises: NetworkInputs, hypotheses: NetworkInputs) -> list[Tensor]:
        """Of the labels, (K,) each."""
        return list(self._scores(premises, hypotheses).softmax(1))

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Prediction]:
        return classification.decide(probabilities, self.labels)

    def _scores(self, one: NetworkInputs, two: NetworkInputs) -> Tensor:
        found: Tensor = self.esim(
            one.vectors, one.mask, two.vectors, two.mask, one.output, two.output, one.packing, two.packing
        )
        return found


def format_examples(examples: Sequence[Example]) -> str:
    """entailment: A man sleeps . -> A man rests ."""
    (example,) = examples
    return f"{example.labels[0]}: {' -> '.join(' '.join(text) for text in example.texts)}"


TASK = Task(
    name="nli",
    metric=ACCURACY,
    paper_reduction=5.8,
    paper_dataset="SNLI",
    recipe=NliRecipe,
    read=read,
    build_vocabularies=classification.build_vocabularies,
    build_network=Entailment,
    count=classification.count,
    format=format_examples,
    input_names=("premise", "hypothesis"),
    texts_per_example=2,
)
