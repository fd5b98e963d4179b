"""What a review thinks of a film (McCann et al. 2017): the biattentive network, scored by accuracy."""

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
from pyelmo.tasks.sentiment.data import read_nsmc, read_sst
from pyelmo.tasks.sentiment.network import BcnNetwork


@dataclass(frozen=True, kw_only=True)
class SentimentData(DataSettings):
    format: Literal["sst", "nsmc"] = "sst"
    binary: bool = False  # SST without what is neutral
    phrases: bool = False  # SST: train on the phrases of a sentence too
    tokenised: bool = False  # NSMC: the text is split by the language's rules already, with spaces between


@dataclass(frozen=True, kw_only=True)
class SentimentNetwork:
    hidden: int = 300
    dropout: float = 0.2
    input_dropout: float = 0.5


@dataclass(frozen=True, kw_only=True)
class SentimentRecipe(TaskRecipe):
    data: SentimentData = field(default_factory=SentimentData)
    network: SentimentNetwork = field(default_factory=SentimentNetwork)


def read(path: Path, data: SentimentData, training: bool) -> list[Example]:
    if data.format == "nsmc":
        found = read_nsmc(path, data.language, tokenised=data.tokenised)
    else:
        found = read_sst(path, binary=data.binary, phrases=data.phrases and training)
    return [Example((tuple(each.words) or EMPTY_TEXT,), (str(each.label),)) for each in found]


class Classifier(nn.Module):
    """One label for each review."""

    def __init__(self, recipe: SentimentRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.bcn = BcnNetwork(
            sizes.input, len(self.labels), hidden=settings.hidden, dropout=settings.dropout,
            input_dropout=settings.input_dropout, extra=sizes.output,
        )  # fmt: skip

    def loss(self, inputs: NetworkInputs) -> Tensor:
        return classification.loss(self._scores(inputs), inputs.examples, self.labels)

    def predict(self, inputs: NetworkInputs) -> list[Prediction]:
        return self.decide(inputs.examples, self.probabilities(inputs))

    def probabilities(self, inputs: NetworkInputs) -> list[Tensor]:
        """Of the labels, (K,) each."""
        return list(self._scores(inputs).softmax(1))

    def decide(self, examples: Sequence[Example], probabilities: Sequence[Tensor]) -> list[Prediction]:
        return classification.decide(probabilities, self.labels)

    def _scores(self, inputs: NetworkInputs) -> Tensor:
        found: Tensor = self.bcn(inputs.vectors, inputs.mask, inputs.output, inputs.packing)
        return found


def format_examples(examples: Sequence[Example]) -> str:
    """4: A lovely film ."""
    (example,) = examples
    return f"{example.labels[0]}: {' '.join(example.words)}"


TASK = Task(
    name="sentiment",
    metric=ACCURACY,
    paper_reduction=6.8,
    paper_dataset="SST-5",
    recipe=SentimentRecipe,
    read=read,
    build_vocabularies=classification.build_vocabularies,
    build_network=Classifier,
    count=classification.count,
    format=format_examples,
)
