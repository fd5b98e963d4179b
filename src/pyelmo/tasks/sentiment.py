"""What a review thinks of a film (McCann et al. 2017): the biattentive network, scored by accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from pyelmo.tasks.bcn_network import BcnNetwork
from pyelmo.tasks.metrics import ACCURACY
from pyelmo.tasks.reviews import read_nsmc, read_sst
from pyelmo.tasks.task import Answer, DataSettings, Example, Inputs, Recipe, Sizes, Task, Vocabularies

NOTHING = (".",)  # stands for the words of a review that has none


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
class SentimentRecipe(Recipe):
    data: SentimentData = field(default_factory=SentimentData)
    network: SentimentNetwork = field(default_factory=SentimentNetwork)


def read(path: Path, data: SentimentData, training: bool) -> list[Example]:
    if data.format == "nsmc":
        found = read_nsmc(path, data.language, tokenised=data.tokenised)
    else:
        found = read_sst(path, binary=data.binary, phrases=data.phrases and training)
    return [Example((tuple(each.words) or NOTHING,), (str(each.label),)) for each in found]


def learn(examples: Sequence[Example]) -> Vocabularies:
    return {"labels": tuple(sorted({label for example in examples for label in example.labels}))}


class Classifier(nn.Module):
    """One label for each review."""

    def __init__(self, recipe: SentimentRecipe, sizes: Sizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.bcn = BcnNetwork(
            sizes.input, len(self.labels), hidden=settings.hidden, dropout=settings.dropout,
            input_dropout=settings.input_dropout, extra=sizes.output,
        )  # fmt: skip

    def loss(self, inputs: Inputs) -> Tensor:
        wanted = [self.labels.index(example.labels[0]) for example in inputs.examples]
        return nn.functional.cross_entropy(self._scores(inputs), torch.tensor(wanted, device=inputs.mask.device))

    def predict(self, inputs: Inputs) -> list[Answer]:
        return [(self.labels[number],) for number in self._scores(inputs).argmax(1).tolist()]

    def _scores(self, inputs: Inputs) -> Tensor:
        found: Tensor = self.bcn(inputs.vectors, inputs.mask, inputs.output)
        return found


def count(example: Example, given: Answer) -> tuple[int, ...]:
    return int(example.labels == given), 1


def show(examples: Sequence[Example]) -> str:
    """4: A lovely film ."""
    (example,) = examples
    return f"{example.labels[0]}: {' '.join(example.words)}"


TASK = Task(
    name="sentiment", metric=ACCURACY, paper=6.8, paper_set="SST-5", recipe=SentimentRecipe, read=read, learn=learn,
    build=Classifier, count=count, show=show,
)  # fmt: skip
