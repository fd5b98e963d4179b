"""Sentiment of reviews (McCann et al. 2017): the biattentive classification network, scored by accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torch import Tensor

from pyelmo.tasks.answers import Answer
from pyelmo.tasks.harness.metrics import ACCURACY
from pyelmo.tasks.harness.settings import DataSettings, TaskRecipe
from pyelmo.tasks.harness.task import EMPTY_TEXT, Example, InputSizes, NetworkInputs, Task, Vocabularies
from pyelmo.tasks.labels import classification
from pyelmo.tasks.sentiment.data import read_nsmc, read_sst
from pyelmo.tasks.sentiment.network import BcnNetwork


@dataclass(frozen=True, kw_only=True)
class SentimentDataSettings(DataSettings):
    format: Literal["sst", "nsmc"] = "sst"
    binary: bool = False  # SST: two classes, without neutral sentences
    phrases: bool = False  # SST: train on the phrases of each sentence, too
    tokenised: bool = False  # NSMC: the text is already split into words, with spaces between

    @property
    def words_given(self) -> bool:
        return self.format == "sst"


@dataclass(frozen=True, kw_only=True)
class SentimentNetworkSettings:
    hidden: int = 300
    dropout: float = 0.2
    input_dropout: float = 0.5


@dataclass(frozen=True, kw_only=True)
class SentimentRecipe(TaskRecipe):
    data: SentimentDataSettings = field(default_factory=SentimentDataSettings)
    network: SentimentNetworkSettings = field(default_factory=SentimentNetworkSettings)


def read(path: Path, data: SentimentDataSettings, training: bool) -> list[Example]:
    if data.format == "nsmc":
        reviews = read_nsmc(path, data.language, tokenised=data.tokenised)
    else:
        reviews = read_sst(path, binary=data.binary, phrases=data.phrases and training)
    return [Example((tuple(review.words) or EMPTY_TEXT,), (str(review.label),)) for review in reviews]


class Classifier(classification.OneLabelModule):
    """The classifier of reviews."""

    def __init__(self, recipe: SentimentRecipe, sizes: InputSizes, vocabularies: Vocabularies) -> None:
        super().__init__()
        settings = recipe.network
        self.labels = vocabularies["labels"]
        self.bcn = BcnNetwork(
            sizes.input, len(self.labels), hidden=settings.hidden, dropout=settings.dropout,
            input_dropout=settings.input_dropout, extra=sizes.output,
        )  # fmt: skip

    def scores(self, *texts: NetworkInputs) -> Tensor:
        (reviews,) = texts
        scores: Tensor = self.bcn(reviews.vectors, reviews.mask, reviews.output, reviews.packing)
        return scores


def format_answers(answers: Sequence[Answer]) -> str:
    """Format a review with its label: 4: A lovely film ."""
    (answer,) = answers
    return f"{answer.labels[0]}: {' '.join(answer.words)}"


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
    format=format_answers,
)
